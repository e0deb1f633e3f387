//! The components of a schema document that one of its payloads needs: a party that may know the payload need not know
//! the other declarations of the file.

use std::collections::BTreeSet;

use super::tree::{NodeId, Tree};
use crate::vocab::{QName, ns};

/// The top-level components that a global element needs, itself included: those that it refers to, directly or through
/// others.
///
/// The members of a substitution group are needed with a reference to its head, and the types derived from an
/// abstract one with a reference to that. Elements that a wildcard allows are not needed.
pub(super) fn needed(tree: &Tree, element: &QName) -> BTreeSet<NodeId> {
    let target = tree.get(0, "targetNamespace").unwrap_or_default();
    let globals: Vec<Global> = tree.parts(0).filter_map(|id| Global::of(tree, id)).collect();
    let mut search = Search { tree, target, globals, needed: BTreeSet::new(), pending: Vec::new() };
    if element.namespace() == target {
        search.find("element", element.local());
    }
    while let Some(id) = search.pending.pop() {
        search.references(id);
    }
    search.needed
}

/// A named top-level component.
struct Global<'a> {
    id: NodeId,
    space: &'static str,
    name: &'a str,
}

struct Search<'a> {
    tree: &'a Tree,
    target: &'a str,
    globals: Vec<Global<'a>>,
    needed: BTreeSet<NodeId>,
    pending: Vec<NodeId>,
}

impl<'a> Global<'a> {
    fn of(tree: &'a Tree, id: NodeId) -> Option<Self> {
        let space = match tree.node(id).local {
            "simpleType" | "complexType" => TYPE,
            "element" => "element",
            "attribute" => "attribute",
            "group" => "group",
            "attributeGroup" => "attributeGroup",
            "notation" => "notation",
            _ => return None,
        };
        Some(Self { id, space, name: tree.get(id, "name")? })
    }
}

/// The symbol space that simple and complex types share.
const TYPE: &str = "type";

impl Search<'_> {
    /// Adds a component by its name.
    fn find(&mut self, space: &str, name: &str) {
        let found = self.globals.iter().find(|global| global.space == space && global.name == name);
        let Some(id) = found.map(|global| global.id) else { return };
        if !self.needed.insert(id) {
            return;
        }
        self.pending.push(id);
        if space == TYPE && matches!(self.tree.get(id, "abstract"), Some("true" | "1")) {
            let derived: Vec<String> = self.names_where(TYPE, |search, id| search.refers_to(id, "base", name));
            derived.iter().for_each(|name| self.find(TYPE, name));
        }
    }

    /// Adds the components that a component refers to.
    fn references(&mut self, component: NodeId) {
        let mut pending = vec![component];
        while let Some(id) = pending.pop() {
            pending.extend(self.tree.parts(id));
            let node = self.tree.node(id);
            for (attribute, value) in self.tree.attributes(id) {
                let space = match (attribute, node.local) {
                    ("type" | "base" | "itemType" | "memberTypes", _) => TYPE,
                    ("substitutionGroup", _) => "element",
                    ("ref", "element") => "element",
                    ("ref", "attribute") => "attribute",
                    ("ref", "group") => "group",
                    ("ref", "attributeGroup") => "attributeGroup",
                    _ => continue,
                };
                for name in value.split_whitespace() {
                    let Some(local) = self.own(id, name) else { continue };
                    self.find(space, local);
                    if attribute == "ref" && space == "element" {
                        self.members(local);
                    }
                }
            }
        }
    }

    /// Adds the elements that may stand in the place of an element.
    fn members(&mut self, head: &str) {
        let mut heads = vec![head.to_owned()];
        while let Some(head) = heads.pop() {
            let members = self.names_where("element", |search, id| search.refers_to(id, "substitutionGroup", &head));
            for member in members {
                let before = self.needed.len();
                self.find("element", &member);
                if self.needed.len() > before {
                    heads.push(member);
                }
            }
        }
    }

    fn names_where(&self, space: &str, is: impl Fn(&Self, NodeId) -> bool) -> Vec<String> {
        let fitting = self.globals.iter().filter(|global| global.space == space && is(self, global.id));
        fitting.map(|global| global.name.to_owned()).collect()
    }

    /// Returns whether a component, or its content model, names another one in an attribute.
    fn refers_to(&self, component: NodeId, attribute: &str, name: &str) -> bool {
        let mut pending = vec![component];
        while let Some(id) = pending.pop() {
            let names = self.tree.get(id, attribute).unwrap_or_default();
            if names.split_whitespace().any(|found| self.own(id, found) == Some(name)) {
                return true;
            }
            // A derivation stands in the content model of a type; the types below that are other ones.
            let below =
                |part: &NodeId| matches!(self.tree.node(*part).local, "complexContent" | "extension" | "restriction");
            pending.extend(self.tree.parts(id).filter(below));
        }
        false
    }

    /// The local name of a reference to a component of the target namespace.
    fn own<'n>(&self, id: NodeId, name: &'n str) -> Option<&'n str> {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let namespace = self.tree.resolve(id, prefix);
        // In a document without a target namespace, an unprefixed name is in the namespace of the including document.
        (namespace == self.target || namespace.is_empty() && prefix.is_empty()).then_some(local)
    }
}

/// Returns whether a top-level part is kept: a needed component, or a link to another document.
pub(super) fn is_kept(tree: &Tree, id: NodeId, needed: &BTreeSet<NodeId>) -> bool {
    let node = tree.node(id);
    needed.contains(&id)
        || node.namespace == ns::XSD && matches!(node.local, "import" | "include" | "redefine" | "defaultOpenContent")
}

#[cfg(test)]
mod tests {
    use super::super::embed::part;

    /// The names of the top-level components in the part for an element.
    fn shown(schema: &str, element: &str) -> Vec<String> {
        let schema = format!(
            "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t'>\
             <xs:annotation><xs:documentation>secret</xs:documentation></xs:annotation>{schema}</xs:schema>"
        );
        let part = part(&schema, &format!("{{urn:t}}{element}").parse().unwrap()).unwrap();
        let tree = super::Tree::parse(part.as_str()).unwrap();
        tree.parts(0).filter_map(|id| tree.get(id, "name").map(str::to_owned)).collect()
    }

    #[test]
    fn an_element_is_shown_with_what_it_refers_to_alone() {
        let schema = "\
            <xs:element name='ask' type='t:Ask'/>\
            <xs:element name='secret' type='t:Secret'/>\
            <xs:complexType name='Ask'><xs:complexContent><xs:extension base='t:Base'><xs:sequence>\
              <xs:element ref='t:part'/><xs:group ref='t:both'/>\
            </xs:sequence><xs:attributeGroup ref='t:marks'/></xs:extension></xs:complexContent></xs:complexType>\
            <xs:complexType name='Base'><xs:attribute ref='t:mark'/></xs:complexType>\
            <xs:complexType name='Secret'><xs:sequence><xs:element ref='t:ask'/></xs:sequence></xs:complexType>\
            <xs:element name='part'><xs:simpleType><xs:union memberTypes='t:One xs:string'/></xs:simpleType></xs:element>\
            <xs:simpleType name='One'><xs:list itemType='t:Item'/></xs:simpleType>\
            <xs:simpleType name='Item'><xs:restriction base='xs:string'/></xs:simpleType>\
            <xs:group name='both'><xs:sequence><xs:element name='in' type='t:Item'/></xs:sequence></xs:group>\
            <xs:attributeGroup name='marks'><xs:attribute name='b'/></xs:attributeGroup>\
            <xs:attribute name='mark' type='xs:string'/>\
            <xs:attribute name='other' type='xs:string'/>";
        let own = ["ask", "Ask", "Base", "part", "One", "Item", "both", "marks", "mark"];
        assert_eq!(shown(schema, "ask"), own);
        assert_eq!(shown(schema, "part"), ["part", "One", "Item"]);
        assert!(shown(schema, "nothing").is_empty());
    }

    #[test]
    fn members_of_a_group_are_shown_where_its_head_is_referred_to() {
        let schema = "\
            <xs:element name='head' type='xs:string'/>\
            <xs:element name='member' substitutionGroup='t:head'/>\
            <xs:element name='deeper' substitutionGroup='t:member'/>\
            <xs:element name='other' type='xs:string'/>\
            <xs:element name='all'><xs:complexType><xs:sequence><xs:element ref='t:head'/></xs:sequence></xs:complexType></xs:element>";
        assert_eq!(shown(schema, "all"), ["head", "member", "deeper", "all"]);
        assert_eq!(shown(schema, "head"), ["head"], "a payload is what its name says");
        assert_eq!(shown(schema, "member"), ["head", "member"], "whose type it has");
    }

    #[test]
    fn an_abstract_type_is_shown_with_those_that_take_its_place() {
        let schema = "\
            <xs:element name='ask' type='t:Any'/>\
            <xs:complexType name='Any' abstract='true'/>\
            <xs:complexType name='Some'><xs:complexContent><xs:extension base='t:Any'/></xs:complexContent></xs:complexType>\
            <xs:complexType name='Other'/>";
        assert_eq!(shown(schema, "ask"), ["ask", "Any", "Some"]);
    }
}

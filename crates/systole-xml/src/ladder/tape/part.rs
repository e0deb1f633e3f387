//! The tape of one element as a document of its own.

use super::uris::Marked;
use super::{NONE, Node, Place, Tape, offset};

impl Tape {
    /// Makes the tape of one element as a document of its own, `text`, which differs from its bytes in this document at
    /// most in the declaration of the default namespace of the root, which it has or not. Namespaces keep their numbers;
    /// their names come by [`Self::copy_uris`] or [`Self::take_uris`].
    pub(in crate::ladder) fn subtree(&self, element: usize, text: &str, tape: &mut Self) {
        let (root, first) = (self.nodes[element], offset(element));
        let nodes = &self.nodes[element..root.next as usize];
        let length = (root.close + (root.name_end - root.at) + 2) - root.at;
        let added = offset(text.len()).wrapping_sub(length);
        let shift = added.wrapping_sub(root.at);
        let behind = self.nodes.get(root.next as usize).map_or(self.attributes.len(), |next| next.attributes as usize);
        let mut places = &self.attributes[root.attributes as usize..behind];
        tape.clear();
        let name_end = root.name_end - root.at;
        let own = nodes.get(1).map_or(behind, |child| child.attributes as usize) - root.attributes as usize;
        if added != 0 && places[..own].first().is_some_and(Place::is_default) {
            places = &places[1..];
        } else if added != 0 {
            let (name, value) = (name_end + 1, name_end + offset(" xmlns=\"".len()));
            let (end, uri) = (name_end + added - 1, Marked::new(root.uri.uri(), Marked::DECLARATION));
            tape.attributes.push(Place { name, value, end, uri });
        }
        let renumbered = offset(tape.attributes.len()).wrapping_sub(offset(behind - places.len()));
        let moved = |node: &Node| Node {
            at: node.at.wrapping_add(shift),
            local: node.local.wrapping_add(shift),
            name_end: node.name_end.wrapping_add(shift),
            content: node.content.wrapping_add(shift),
            close: node.close.wrapping_add(shift),
            next: node.next - first,
            parent: node.parent.wrapping_sub(first),
            attributes: node.attributes.wrapping_add(renumbered),
            uri: node.uri,
        };
        tape.nodes.extend(nodes.iter().map(moved));
        let top = &mut tape.nodes[0];
        (top.at, top.local, top.name_end) = (0, root.local - root.at, name_end);
        (top.parent, top.attributes) = (NONE, 0);
        let moved = |place: &Place| Place {
            name: place.name.wrapping_add(shift),
            value: place.value.wrapping_add(shift),
            end: place.end.wrapping_add(shift),
            uri: place.uri,
        };
        tape.attributes.extend(places.iter().map(moved));
    }

    /// Takes the names of namespaces of `whole`, which is not used any more.
    pub(in crate::ladder) fn take_uris(&mut self, whole: &mut Self) {
        std::mem::swap(&mut self.uris, &mut whole.uris);
    }

    /// Copies the names of namespaces of `whole`.
    pub(in crate::ladder) fn copy_uris(&mut self, whole: &Self) {
        self.uris.copy(&whole.uris);
    }
}

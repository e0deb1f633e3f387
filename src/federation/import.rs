//! The import of a contract: what another organism lets its client call.

use std::path::Path;

use systole_core::vocab::QName;

use super::open;
use crate::listeners::organism::{MOST, OrganismContract, OrganismLock, file_name};
use crate::outbound::retry::Policy;
use crate::remote::CallOptions;
use crate::remote::link::{Call, Link};
use crate::terminal::readable;

/// A contract that was imported.
#[derive(Debug)]
#[non_exhaustive]
pub struct Imported {
    /// The lock.
    pub lock: OrganismLock,
    /// Remarks for whoever imports it: payloads that can't be called.
    pub remarks: Vec<String>,
}

/// Asks an organism for its contract with the client of a token.
///
/// # Errors
/// The reason why the organism can't be asked, or why its contract can't be one here.
pub async fn import(url: &str, token: &Path, certificates: Option<&Path>) -> Result<Imported, String> {
    // The person who imports is there to try again.
    let policy = Policy { attempts: 1, ..CallOptions::default().policy };
    let link = open(url, token, certificates, CallOptions::default().policy(policy).answer(MOST))?;
    let contract = contract(&link).await?;
    let remarks = judge(&contract)?;
    Ok(Imported { lock: OrganismLock::new(contract), remarks })
}

/// The contract as it is now.
pub(super) async fn contract(link: &Link) -> Result<OrganismContract, String> {
    let body = link.ask(&Call::get(&["v1", "contract"])).await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&body).map_err(|error| {
        let why = readable(&error.to_string());
        format!("the answer to GET /v1/contract is no contract of an organism: {why}")
    })
}

/// Judges a contract, as the check of the file does later. Returns remarks.
fn judge(contract: &OrganismContract) -> Result<Vec<String>, String> {
    if contract.payloads.is_empty() {
        return Err(format!(
            "the client {} may call nothing there: let its operator add `calls` to that client",
            readable(&contract.client)
        ));
    }
    for (at, document) in contract.documents.iter().enumerate() {
        let name = readable(&document.name);
        if file_name(&document.name).is_none() {
            return Err(format!(
                "the schema '{name}' has a name that no file is to have here: let its operator rename it"
            ));
        }
        if contract.documents[..at].iter().any(|earlier| earlier.name == document.name) {
            return Err(format!("two of its schemas have the name '{name}': let its operator rename one of the files"));
        }
    }
    let declared =
        contract.declared().map_err(|error| format!("its schemas are none: {}", readable(&error.to_string())))?;
    let is_declared = |name: &str| declared.iter().any(|schema| schema.qname().to_string() == name);
    let mut remarks = Vec::new();
    for called in &contract.payloads {
        let name = readable(&called.payload);
        if called.payload.parse::<QName>().is_err() || !is_declared(&called.payload) {
            return Err(format!("no schema of the contract declares the payload '{name}'"));
        }
        if let Some(reply) = called.replies.iter().find(|reply| !is_declared(reply)) {
            return Err(format!("no schema of the contract declares the reply '{}'", readable(reply)));
        }
        let others: Vec<_> = contract.payloads.iter().filter(|other| other.payload == called.payload).collect();
        if others.len() > 1 && std::ptr::eq(others[0], called) {
            let listeners: Vec<_> = others.iter().map(|other| readable(&other.listener)).collect();
            remarks.push(format!(
                "{name} is left out: {} accept it there, and a message here would not say which one is meant",
                listeners.join(" and ")
            ));
        }
    }
    Ok(remarks)
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::Name;
    use systole_xml::schema::PayloadSchema;

    use super::*;

    fn contract() -> OrganismContract {
        let xsd = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:p'>\
                   <xs:element name='ask' type='xs:string'/><xs:element name='told' type='xs:string'/></xs:schema>";
        let schemas = PayloadSchema::from_xsd("p.xsd", xsd).unwrap();
        let mut contract = OrganismContract::new("bank", &Name::parse("shop").unwrap());
        let payload = |text: &str| text.parse::<QName>().unwrap();
        let till = Name::parse("till").unwrap();
        contract.add(&payload("{urn:p}ask"), (&till, false), "", &[payload("{urn:p}told")]);
        schemas.iter().for_each(|schema| contract.declare(schema));
        contract
    }

    #[test]
    fn a_contract_that_would_lead_elsewhere_is_refused() {
        assert_eq!(judge(&contract()), Ok(Vec::new()));
        let refused = |change: fn(&mut OrganismContract)| {
            let mut contract = contract();
            change(&mut contract);
            judge(&contract).unwrap_err()
        };
        assert!(refused(|contract| contract.payloads.clear()).contains("shop may call nothing"));
        assert!(refused(|contract| contract.documents[0].name = "../p.xsd".to_owned()).contains("no file is to have"));
        assert!(
            refused(|contract| contract.documents.push(contract.documents[0].clone())).contains("two of its schemas")
        );
        assert!(refused(|contract| contract.documents[0].text.clear()).contains("its schemas are none"));
        assert!(refused(|contract| contract.payloads[0].payload = "{urn:p}other".to_owned()).contains("the payload"));
        assert!(refused(|contract| contract.payloads[0].replies.push("{urn:p}x".to_owned())).contains("the reply"));
    }

    #[test]
    fn a_payload_of_two_listeners_is_left_out() {
        let mut contract = contract();
        let (payload, post) = ("{urn:p}ask".parse().unwrap(), Name::parse("post").unwrap());
        contract.add(&payload, (&post, true), "", &[]);
        let remarks = judge(&contract).unwrap();
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(remarks[0].contains("till and post accept it there"), "{remarks:?}");
        assert_eq!(OrganismLock::new(contract).accepts().count(), 0);
    }
}

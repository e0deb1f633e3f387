//! Ids of workspaces: UUIDs, made of the names of listeners alone.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use systole_core::vocab::Name;
use uuid::{Builder, Uuid};

/// Prefix of a name before it is hashed.
const PREFIX: &str = "urn:systole:workspace:";

/// The id of a listener or a client: its name, if that is a UUID; else the UUID of version 5 (RFC 9562, section 5.5) of
/// `urn:systole:workspace:NAME` in the namespace of URLs.
pub(crate) fn id_of(name: &Name) -> Uuid {
    parse(name.as_str()).unwrap_or_else(|| {
        let named = [Uuid::NAMESPACE_URL.as_bytes(), PREFIX.as_bytes(), name.as_str().as_bytes()].concat();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest(&SHA1_FOR_LEGACY_USE_ONLY, &named).as_ref()[..16]);
        Builder::from_sha1_bytes(bytes).into_uuid()
    })
}

/// Parses a UUID with hyphens.
pub(super) fn parse(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|_| text.len() == 36)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_an_id_is_its_own_and_another_one_is_what_python_says() {
        // uuid.uuid5(uuid.NAMESPACE_URL, "urn:systole:workspace:scout")
        assert_eq!(id_of(&Name::parse("scout").unwrap()).to_string(), "3578ee30-02d5-5a4d-a967-969ed819a346");
        let uuid = "0f9a3c52-1111-4222-8333-444455556666";
        assert_eq!(id_of(&Name::parse(uuid).unwrap()).to_string(), uuid);
        assert_eq!(parse("0f9a3c52111142228333444455556666"), None);
    }
}

//! Digests of documents, by which schemas are distinguished.

/// BLAKE3 hash of the documents of a schema.
pub(in crate::schema) type Digest = [u8; 32];

/// The digest of documents by their own digests, sorted.
pub(in crate::schema) fn digest(documents: impl IntoIterator<Item = Digest>) -> Digest {
    let mut digests: Vec<Digest> = documents.into_iter().collect();
    digests.dedup();
    blake3::hash(digests.as_flattened()).into()
}

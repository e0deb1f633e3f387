//! Transcripts of conversations: entries in a chain of hashes, whose head is signed.
//!
//! The hash of an entry is SHA-256 of its bytes, and each entry has that of the one before, so no entry can be changed, deleted
//! or moved without a change of the head. The head is a message, signed in the one form of messages. Writing and verifying hold
//! one entry at a time.
//!
//! Not here: what the entries say (`systole_store::journal`).

use std::io::{self, Read, Write};

use systole_xml::ladder::Raw;
use systole_xml::ladder::transcript::{
    CLOSING, Cutter, ELEMENT_BYTES, Entry, FormError, Head, OPENING, Piece, is_meant,
};
use systole_xml::vocab::XmlLimits;

use super::keys::{PublicKey, PublicKeys, VerifyError};
use super::{Identity, sha256};

/// Bytes that are read of a file at least at once.
const CHUNK: usize = 64 << 10;

/// A hash of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

/// The reason why a text is no hash of an entry.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write the 64 hexadecimal digits that `systole thread transcript` printed")]
pub struct HashError;

systole_core::vocab::debug_is_display!(HashError);

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Hash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or(HashError)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
        bytes.try_into().map(Self).map_err(|_| HashError)
    }
}

/// The end of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptEnd {
    /// Entries behind the first one, which describes the conversation.
    pub entries: u64,
    /// The hash of the last entry.
    pub head: Hash,
    /// The key that signed the head; none if it was not verified by keys.
    pub key: Option<PublicKey>,
}

/// Writes a transcript.
#[derive(Debug)]
pub struct TranscriptWriter<W> {
    out: W,
    /// The number and the hash of the last entry.
    last: Option<(u64, Hash)>,
}

impl<W: Write> TranscriptWriter<W> {
    /// Begins a transcript.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(OPENING.as_bytes())?;
        Ok(Self { out, last: None })
    }

    /// Writes the next entry; the first one describes the conversation.
    ///
    /// # Errors
    /// The error of the writer, or of an entry that is longer than those that are read.
    pub fn entry(&mut self, mut entry: Entry) -> io::Result<()> {
        let number = self.last.map_or(0, |(number, _)| number + 1);
        if let Some((_, hash)) = self.last {
            entry.lead("previous", hash.to_string());
        }
        entry.lead("n", number.to_string());
        let text = entry.write();
        if text.len() > ELEMENT_BYTES {
            let (kind, bytes) = (entry.kind(), text.len());
            return Err(io::Error::other(format!(
                "entry {number}, a {kind}, has {bytes} bytes, and a transcript has at most {ELEMENT_BYTES} in one"
            )));
        }
        self.last = Some((number, Hash(sha256(text.as_bytes()))));
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Writes the head, signed if there is an identity.
    ///
    /// # Errors
    /// The error of the writer, or of a transcript without an entry.
    pub fn finish(mut self, identity: Option<&Identity>) -> io::Result<TranscriptEnd> {
        let (entries, hash) = self.last.ok_or_else(|| io::Error::other("a transcript has an entry at least"))?;
        let head = Head::write(entries, &hash.to_string());
        match identity {
            Some(identity) => {
                let signed = identity.sign_head(&head.into()).map_err(io::Error::other)?;
                self.out.write_all(&signed)?;
            }
            None => self.out.write_all(head.as_bytes())?,
        }
        self.out.write_all(b"\n")?;
        self.out.write_all(CLOSING.as_bytes())?;
        self.out.flush()?;
        let key = identity.and_then(|identity| identity.keys().get(identity.id()).cloned());
        Ok(TranscriptEnd { entries, head: hash, key })
    }
}

/// The reason why a transcript is refused.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptFault {
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are no transcript.
    #[error("{}{error}", place(*.entry))]
    Form {
        /// The number of the entry that has another form, where there is one.
        entry: Option<u64>,
        /// The reason.
        error: FormError,
    },
    /// Entries are missing.
    #[error("{} missing: entry {} follows entry {}", range(*.first, *.last), .last + 1, .first - 1)]
    Missing {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// An entry occurs a second time.
    #[error("entry {entry} occurs a second time, behind entry {behind}")]
    Repeated {
        /// The entry.
        entry: u64,
        /// The entry before.
        behind: u64,
    },
    /// An entry is in another place.
    #[error("entry {entry} is in the place of entry {place}: the order was changed")]
    Moved {
        /// The entry.
        entry: u64,
        /// The place.
        place: u64,
    },
    /// An entry is another one than was chained.
    #[error("entry {0} was changed: it does not have the hash by which the next entry names it")]
    Changed(u64),
    /// The last entry, or the head, is another one than was written.
    #[error("the last entry ({0}) or the head was changed: they do not have the same hash")]
    ChangedEnd(u64),
    /// An entry names another hash of the one before.
    #[error("entry {0} was changed: it does not name the hash of the entry before it")]
    Unlinked(u64),
    /// The file ends too early.
    #[error("the file is cut: it ends behind entry {0}, without the head and its last line")]
    Cut(u64),
    /// There is something behind the head, or no entry before it.
    #[error("the head must stand behind all entries, as the last element, and once")]
    Misplaced,
    /// The head was made for other entries.
    #[error(
        "the head is that of {claimed} entries, and the file has {found}: entries were cut off or added at the end"
    )]
    Count {
        /// Entries by the head.
        claimed: u64,
        /// Entries of the file.
        found: u64,
    },
    /// The head is not the known one.
    #[error("the head is {found}, and the known one is {known}: the transcript was cut at its end, or is another one")]
    OtherHead {
        /// The hash of the last entry.
        found: Hash,
        /// The hash that is known from elsewhere.
        known: Hash,
    },
    /// The head has no signature, and keys to verify it were given.
    #[error("the head is not signed: make the transcript with `--sign KEYFILE`, or give its head by `--head HASH`")]
    Unsigned,
    /// The signature of the head does not verify.
    #[error("the signature of the head: {0}")]
    Signature(VerifyError),
}

systole_core::vocab::debug_is_display!(TranscriptFault);

fn place(entry: Option<u64>) -> String {
    entry.map_or_else(String::new, |entry| format!("entry {entry}: "))
}

fn range(first: u64, last: u64) -> String {
    if first == last { format!("entry {first} is") } else { format!("entries {first} to {last} are") }
}

/// Reads a transcript, and verifies it. An entry counts only once the end has been verified.
#[derive(Debug)]
pub struct TranscriptReader<'k, R> {
    elements: Elements<R>,
    keys: Option<&'k PublicKeys>,
    known: Option<Hash>,
    /// The number and the hash of the last entry.
    last: Option<(u64, Hash)>,
    end: Option<TranscriptEnd>,
}

impl<'k, R: Read> TranscriptReader<'k, R> {
    /// Reads a transcript whose head one of these keys must have signed.
    pub fn signed(input: R, keys: &'k PublicKeys) -> Self {
        Self { keys: Some(keys), ..Self::of(input) }
    }

    /// Reads a transcript with that head, which is known from elsewhere.
    pub fn known(input: R, head: Hash) -> TranscriptReader<'static, R> {
        TranscriptReader { known: Some(head), ..TranscriptReader::of(input) }
    }

    /// Demands that head, too.
    #[must_use]
    pub fn with_head(self, head: Option<Hash>) -> Self {
        Self { known: head.or(self.known), ..self }
    }

    fn of(input: R) -> Self {
        let elements = Elements { input, cutter: Cutter::default(), next: None };
        Self { elements, keys: None, known: None, last: None, end: None }
    }

    /// Reads the next entry; none at the end, which is verified then.
    ///
    /// # Errors
    /// [`TranscriptFault`] has the first mistake, by the number of the entry where it has one.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, TranscriptFault> {
        if self.end.is_some() {
            return Ok(None);
        }
        let place = self.last.map_or(0, |(number, _)| number + 1);
        let element = match self.elements.take().map_err(|fault| fault.at(place))? {
            Some(Piece::Element(element)) => element,
            Some(Piece::End) => return Err(TranscriptFault::Misplaced),
            None => return Err(TranscriptFault::Cut(place.saturating_sub(1))),
        };
        if element.starts_with("<message ") {
            self.end = Some(self.head(element)?);
            return Ok(None);
        }
        let form = |error| TranscriptFault::Form { entry: Some(place), error };
        let entry = Entry::read(&element).map_err(form)?;
        let link = Link::of(&entry).ok_or_else(|| form(FormError::Entry { expected: "its number and link", at: 0 }))?;
        let hash = Hash(sha256(element.as_bytes()));
        self.check_place(link.number, place)?;
        match (self.last, link.previous) {
            (None, None) => {}
            (Some((_, before)), Some(previous)) if before == previous => {}
            // The entry behind tells which of both was changed.
            (Some((number, _)), Some(_)) => {
                return Err(match self.elements.peek_link().map(|next| next.previous) {
                    Some(Some(next)) if next == hash => TranscriptFault::Changed(number),
                    _ => TranscriptFault::Unlinked(place),
                });
            }
            (None, Some(_)) | (Some(_), None) => return Err(TranscriptFault::Unlinked(place)),
        }
        self.last = Some((place, hash));
        Ok(Some(entry))
    }

    /// The end, once it has been read and verified.
    pub fn end(&self) -> Option<&TranscriptEnd> {
        self.end.as_ref()
    }

    /// Checks that an entry is in its place.
    fn check_place(&mut self, number: u64, place: u64) -> Result<(), TranscriptFault> {
        if number == place {
            return Ok(());
        }
        if number < place {
            return Err(TranscriptFault::Repeated { entry: number, behind: place - 1 });
        }
        // An entry that is missing here may come behind.
        match self.elements.peek_link() {
            Some(next) if next.number == place || next.number < number => {
                Err(TranscriptFault::Moved { entry: number, place })
            }
            _ if place == 0 => Err(TranscriptFault::Moved { entry: number, place }),
            _ => Err(TranscriptFault::Missing { first: place, last: number - 1 }),
        }
    }

    fn head(&mut self, text: String) -> Result<TranscriptEnd, TranscriptFault> {
        let (entries, found) = self.last.ok_or(TranscriptFault::Misplaced)?;
        let head = Head::read(&text).map_err(|error| TranscriptFault::Form { entry: None, error })?;
        let key = match self.keys {
            Some(_) if !head.is_signed => return Err(TranscriptFault::Unsigned),
            Some(keys) => {
                let key = keys.verify_bytes(&Raw::new(text), &XmlLimits::UNLIMITED);
                Some(key.map_err(TranscriptFault::Signature)?.clone())
            }
            None => None,
        };
        match self.elements.take().map_err(|fault| fault.at(entries + 1))? {
            Some(Piece::End) => {}
            Some(Piece::Element(_)) => return Err(TranscriptFault::Misplaced),
            None => return Err(TranscriptFault::Cut(entries)),
        }
        // Nothing may stand behind the last line.
        if self.elements.take().map_err(|fault| fault.at(entries + 1))?.is_some() {
            return Err(TranscriptFault::Misplaced);
        }
        if head.entries != entries {
            return Err(TranscriptFault::Count { claimed: head.entries, found: entries });
        }
        if head.hash != found.to_string() {
            return Err(TranscriptFault::ChangedEnd(entries));
        }
        match self.known {
            Some(known) if known != found => Err(TranscriptFault::OtherHead { found, known }),
            _ => Ok(TranscriptEnd { entries, head: found, key }),
        }
    }
}

/// The place of an entry in the chain, as it says itself.
struct Link {
    number: u64,
    previous: Option<Hash>,
}

impl Link {
    fn of(entry: &Entry) -> Option<Self> {
        let previous =
            entry.get("previous").map(|text| text.parse().ok().filter(|hash: &Hash| hash.to_string() == text));
        let number: u64 = entry.get("n")?.parse().ok()?;
        let is_plain = number.to_string() == entry.get("n")?;
        match previous {
            Some(None) => None,
            previous => is_plain.then_some(Self { number, previous: previous.flatten() }),
        }
    }
}

/// The elements of a file.
#[derive(Debug)]
struct Elements<R> {
    input: R,
    cutter: Cutter,
    /// An element that was looked at ahead of its turn.
    next: Option<Piece>,
}

/// A mistake at a place that the reader of elements doesn't know.
enum AtPlace {
    Io(io::Error),
    Form(FormError),
}

impl AtPlace {
    fn at(self, entry: u64) -> TranscriptFault {
        match self {
            Self::Io(error) => TranscriptFault::Io(error),
            // These name their place themselves, or have none.
            Self::Form(
                error @ (FormError::NoTranscript | FormError::Version | FormError::LineEnds | FormError::Front),
            ) => TranscriptFault::Form { entry: None, error },
            Self::Form(error) => TranscriptFault::Form { entry: Some(entry), error },
        }
    }
}

impl<R: Read> Elements<R> {
    fn take(&mut self) -> Result<Option<Piece>, AtPlace> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        let mut chunk = Vec::new();
        loop {
            if let Some(piece) = self.cutter.next_piece().map_err(AtPlace::Form)? {
                return Ok(Some(piece));
            }
            // A long element is not scanned anew for each small chunk.
            chunk.resize(CHUNK.max(self.cutter.held()), 0);
            let read = match self.input.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(AtPlace::Io)?,
            };
            if read == 0 {
                return Ok(None);
            }
            self.cutter.push(&chunk[..read]);
        }
    }

    /// Looks at the link of the next entry, or of the head, which names the last entry as one behind it would.
    fn peek_link(&mut self) -> Option<Link> {
        if self.next.is_none() {
            self.next = self.take().ok().flatten();
        }
        let Some(Piece::Element(element)) = &self.next else { return None };
        if let Ok(head) = Head::read(element) {
            return Some(Link { number: head.entries + 1, previous: head.hash.parse().ok() });
        }
        Link::of(&Entry::read(element).ok()?)
    }
}

/// Returns whether a file with these first bytes is meant as a transcript, of whatever version, also behind a byte order mark and
/// an XML declaration, with which it is refused.
pub fn is_transcript(start: &[u8]) -> bool {
    is_meant(start)
}

/// Bytes of a file that [`is_transcript`] needs.
pub const TRANSCRIPT_START: usize = 512;

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::*;

    fn written(identity: Option<&Identity>, entries: u64) -> (Vec<String>, Hash) {
        let mut out = Vec::new();
        let mut writer = TranscriptWriter::new(&mut out).unwrap();
        for number in 0..=entries {
            let mut entry = Entry::new(if number == 0 { "conversation" } else { "message" });
            entry.put("at", format!("2026-11-30T12:00:{number:02}Z"));
            entry.put_document("body", format!("<say xmlns=\"urn:e\">number {number}\nof {entries}</say>"));
            writer.entry(entry).unwrap();
        }
        let end = writer.finish(identity).unwrap();
        assert_eq!(end.entries, entries);
        // Line feeds of documents are no ends of entries.
        let text = String::from_utf8(out)
            .unwrap()
            .replace("</say></t:body></t:message>\n", "</say></t:body></t:message>\n\u{0}");
        let text = text
            .replace("</t:conversation>\n", "</t:conversation>\n\u{0}")
            .replace(OPENING, &format!("{OPENING}\u{0}"));
        let text = text.replace("</message>\n", "</message>\n\u{0}");
        (text.split('\u{0}').map(str::to_owned).collect(), end.head)
    }

    fn verified(keys: Option<&PublicKeys>, head: Option<Hash>, file: &str) -> Result<TranscriptEnd, String> {
        let mut reader = TranscriptReader { keys, known: head, ..TranscriptReader::of(file.as_bytes()) };
        loop {
            match reader.next_entry() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(reader.end().unwrap().clone()),
                Err(fault) => return Err(fault.to_string()),
            }
        }
    }

    #[test]
    fn a_transcript_verifies_by_its_key_or_its_head() {
        let folder = Folder::new("transcript");
        let (ada, eve) = (folder.identity("ada"), folder.identity("eve"));
        let (lines, head) = written(Some(&ada), 6);
        let file = lines.concat();
        let end = verified(Some(ada.keys()), None, &file).unwrap();
        assert_eq!((end.entries, end.head, end.key.unwrap().id), (6, head, "2026-11-30".to_owned()));
        assert_eq!(verified(None, Some(head), &file).unwrap().key, None);
        verified(Some(ada.keys()), Some(head), &file).unwrap();
        assert!(verified(Some(eve.keys()), None, &file).unwrap_err().contains("none of those"));
        // The head is a message that is verified alone, too.
        let own = &lines[8];
        ada.keys().verify_bytes(&Raw::new(own.trim_end().to_owned()), &XmlLimits::default()).unwrap();
        let (unsigned, head) = written(None, 6);
        let unsigned = unsigned.concat();
        assert!(verified(Some(ada.keys()), None, &unsigned).unwrap_err().contains("the head is not signed"));
        verified(None, Some(head), &unsigned).unwrap();
    }

    #[test]
    fn what_was_done_to_a_transcript_is_found_and_named() {
        let folder = Folder::new("forged");
        let (ada, eve) = (folder.identity("ada"), folder.identity("eve"));
        let (lines, head) = written(Some(&ada), 6);
        // The opening, entries 0 to 6, the head, the closing.
        assert_eq!(lines.len(), 10);
        let of = |edit: &dyn Fn(&mut Vec<String>)| {
            let mut lines = lines.clone();
            edit(&mut lines);
            verified(Some(ada.keys()), None, &lines.concat()).expect_err("it was forged")
        };
        let changed = |line: usize, from: &'static str, to: &'static str| {
            of(&|lines| {
                assert!(lines[line].contains(from), "{from}");
                lines[line] = lines[line].replacen(from, to, 1);
            })
        };
        assert_eq!(of(&|lines| drop(lines.remove(4))), "entry 3 is missing: entry 4 follows entry 2");
        assert_eq!(of(&|lines| drop(lines.drain(3..6))), "entries 2 to 4 are missing: entry 5 follows entry 1");
        assert_eq!(of(&|lines| drop(lines.remove(1))), "entry 1 is in the place of entry 0: the order was changed");
        assert_eq!(of(&|lines| lines.swap(4, 5)), "entry 4 is in the place of entry 3: the order was changed");
        assert_eq!(of(&|lines| lines.swap(2, 6)), "entry 5 is in the place of entry 1: the order was changed");
        assert_eq!(of(&|lines| lines.insert(5, lines[4].clone())), "entry 3 occurs a second time, behind entry 3");
        assert_eq!(of(&|lines| lines.insert(7, lines[3].clone())), "entry 2 occurs a second time, behind entry 5");
        let first = "it does not have the hash by which the next entry names it";
        assert_eq!(changed(4, "number 3", "number 9"), format!("entry 3 was changed: {first}"));
        assert_eq!(changed(1, "number 0", "number 9"), format!("entry 0 was changed: {first}"));
        assert_eq!(changed(6, "number 5", "number 9"), format!("entry 5 was changed: {first}"));
        let end = "the last entry (6) or the head was changed: they do not have the same hash";
        assert_eq!(changed(7, "number 6", "number 9"), end);
        let before = lines[4].find("previous=\"").unwrap() + "previous=\"".len();
        let digit = if &lines[4][before..=before] == "0" { "1" } else { "0" };
        let unlinked = of(&|lines| lines[4].replace_range(before..=before, digit));
        assert_eq!(unlinked, "entry 3 was changed: it does not name the hash of the entry before it");
        // An entry of another transcript, in the chain as far as that goes.
        let inserted = of(&|lines| {
            let mut entry = Entry::new("message");
            entry.lead("previous", Hash(sha256(lines[3].trim_end_matches('\n').as_bytes())).to_string());
            entry.lead("n", "3");
            lines.insert(4, format!("{}\n", entry.write()));
        });
        assert_eq!(inserted, "entry 3 occurs a second time, behind entry 3");
        // The head.
        assert_eq!(
            of(&|lines| drop(lines.remove(8))),
            "the head must stand behind all entries, as the last element, and once"
        );
        assert_eq!(
            of(&|lines| lines.swap(7, 8)),
            "the head must stand behind all entries, as the last element, and once"
        );
        assert_eq!(
            of(&|lines| lines.insert(8, lines[8].clone())),
            "the head must stand behind all entries, as the last element, and once"
        );
        assert!(changed(8, "entries=\"6\"", "entries=\"7\"").contains("the message was changed after it was signed"));
        assert!(changed(8, "<ds:KeyName>2", "<ds:KeyName>3").contains("is none of those"));
        assert!(changed(8, "</meta><head", "</meta> <head").contains("the head is no envelope"));
        let cut = "the head is that of 6 entries, and the file has 4: entries were cut off or added at the end";
        assert_eq!(of(&|lines| drop(lines.drain(6..8))), cut);
        // Another file with a head by the same key, and a file of another key.
        let (shorter, _) = written(Some(&ada), 4);
        assert_eq!(
            of(&|lines| lines[8].clone_from(&shorter[6])),
            cut.replace("6 entries", "X").replace("has 4", "has 6").replace('X', "4 entries")
        );
        let (others, _) = written(Some(&eve), 6);
        assert!(of(&|lines| lines.clone_from(&others)).contains("none of those"));
        // A shorter transcript is one: the known head tells that the tail is missing.
        assert!(verified(Some(ada.keys()), None, &shorter.concat()).is_ok());
        let known = verified(Some(ada.keys()), Some(head), &shorter.concat()).unwrap_err();
        assert!(known.contains(&format!("the known one is {head}")), "{known}");
        // Files that are cut, or have more.
        let whole = lines.concat();
        for end in [0, 10, OPENING.len(), whole.len() / 2, whole.len() - CLOSING.len(), whole.len() - 1] {
            let why = verified(Some(ada.keys()), None, &whole[..end]).unwrap_err();
            assert!(why.starts_with("the file is cut: it ends behind entry "), "{end}: {why}");
        }
        for (more, why) in
            [("x", "an element is expected"), ("\n", "an element is expected"), (&*whole, "an element is expected")]
        {
            let found = verified(Some(ada.keys()), None, &format!("{whole}{more}")).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
        assert_eq!(
            changed(0, "v1", "v2"),
            "it is a transcript of another version than v1: use the systole that wrote it"
        );
        assert!(changed(0, "<t:transcript", "<transcript").starts_with("it is no transcript: "));
        assert!(changed(3, "<t:body>", "<!--c--><t:body>").starts_with("entry 2: an element is expected at byte "));
        assert!(changed(3, " at=", "  at=").starts_with("entry 2: a name of small letters is expected at byte "));
        assert!(changed(3, " n=\"2\"", " n=\"02\"").starts_with("entry 2: its number and link is expected"));
    }

    #[test]
    fn a_message_that_the_organism_signed_for_another_use_is_no_head() {
        let folder = Folder::new("head");
        let ada = folder.identity("ada");
        // The attacker chains entries, and needs a signature of the head.
        let (mut lines, _) = written(None, 4);
        let head = lines[6].trim_end().to_owned();
        let sent = head.replacen("<meta>", "<meta><from>echo</from><to>cli</to>", 1);
        for message in [&head, &sent] {
            let refused = ada.sign(&message.clone().into()).unwrap_err().to_string();
            assert!(refused.contains("is the head of a transcript"), "{refused}");
        }
        // A program that has the key, and signs whatever it sends.
        let signed = String::from_utf8(ada.sign_head(&sent.into()).unwrap().into()).unwrap();
        ada.keys().verify_bytes(&Raw::new(signed.clone()), &XmlLimits::default()).unwrap();
        lines[6] = format!("{signed}\n");
        let why = "the <meta> of the head must hold one signature and nothing else";
        let refused = verified(Some(ada.keys()), None, &lines.concat()).unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
        // Another spelling of the signature.
        let own = written(Some(&ada), 4).0.concat();
        verified(Some(ada.keys()), None, &own).unwrap();
        for (from, to) in [
            ("<ds:SignatureValue>", "<ds:SignatureValue>\n"),
            ("</dsig11:PublicKey>", " </dsig11:PublicKey>"),
            ("<ds:KeyInfo>", "\n<ds:KeyInfo>"),
            ("<ds:Signature ", "<ds:Signature xmlns:x=\"urn:x\" "),
        ] {
            assert!(own.contains(from), "{from}");
            let refused = verified(Some(ada.keys()), None, &own.replacen(from, to, 1)).unwrap_err();
            assert!(refused.starts_with(why), "{from}: {refused}");
        }
    }

    proptest::proptest! {
        #[test]
        fn an_edit_of_the_bytes_leaves_the_entries_or_is_refused(
            place in proptest::prelude::any::<proptest::sample::Index>(),
            length in 0_usize..400,
            other in proptest::prelude::any::<proptest::sample::Index>(),
            text in ".{0,3}",
            kind in 0..3,
        ) {
            static SIGNED: std::sync::OnceLock<(PublicKeys, String, Hash)> = std::sync::OnceLock::new();
            let (keys, file, head) = SIGNED.get_or_init(|| {
                let folder = Folder::new("edits");
                let ada = folder.identity("ada");
                let (lines, head) = written(Some(&ada), 6);
                (ada.keys().clone(), lines.concat(), head)
            });
            let (from, to) = (place.index(file.len()), other.index(file.len()));
            let end = file.len().min(from + length);
            // The file is of ASCII.
            let edited = match kind {
                0 => [&file[..from], &text, &file[end..]].concat(),
                1 => [&file[..to], &file[from..end], &file[to..]].concat(),
                _ => file[..from].to_owned(),
            };
            if let Ok(end) = verified(Some(keys), None, &edited) {
                proptest::prop_assert_eq!(end.head, *head);
                proptest::prop_assert_eq!(&edited, file);
            }
        }
    }

    /// Entries that a reader makes as they are asked for.
    struct Endless<'a> {
        made: Vec<u8>,
        at: usize,
        left: u64,
        writer: Option<TranscriptWriter<Vec<u8>>>,
        identity: &'a Identity,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.at == self.made.len() {
                let Some(mut writer) = self.writer.take() else { return Ok(0) };
                self.at = 0;
                if self.left == 0 {
                    self.made.clear();
                    TranscriptWriter { out: &mut self.made, last: writer.last }.finish(Some(self.identity))?;
                } else {
                    let mut entry = Entry::new("message");
                    entry.put_long("value", "x".repeat(1 << 20));
                    writer.entry(entry)?;
                    self.left -= 1;
                    self.made = std::mem::take(&mut writer.out);
                    self.writer = Some(writer);
                }
            }
            let bytes = into.len().min(self.made.len() - self.at);
            into[..bytes].copy_from_slice(&self.made[self.at..self.at + bytes]);
            self.at += bytes;
            Ok(bytes)
        }
    }

    #[test]
    fn a_transcript_of_100_megabytes_is_verified_with_the_memory_of_its_entries() {
        let folder = Folder::new("large");
        let ada = folder.identity("ada");
        let writer = TranscriptWriter::new(Vec::new()).unwrap();
        let endless = Endless { made: Vec::new(), at: 0, left: 100, writer: Some(writer), identity: &ada };
        let mut reader = TranscriptReader::signed(endless, ada.keys());
        let mut most = 0;
        while reader.next_entry().unwrap().is_some() {
            most = most.max(reader.elements.cutter.held());
        }
        assert_eq!(reader.end().unwrap().entries, 99);
        assert!(most < 4 << 20, "{most} bytes of the file were held");
    }
}

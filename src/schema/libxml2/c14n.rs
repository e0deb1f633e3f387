//! What libxml makes of whole documents: a judge of the strict pass in tests, never a part of the pump.

use std::ptr;

use super::{Log, c, handler, initialize};

/// What libxml finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) enum Reading {
    /// It is not well-formed, by XML or by Namespaces in XML; what it says first.
    Refused(String),
    /// Exclusive C14N 1.0 of the document; `None` if libxml has none, because a namespace name is relative.
    Canonical(Option<Vec<u8>>),
}

/// Parses a document without DTD, external parts or recovery, and canonicalizes it.
pub(in crate::schema) fn read(document: &[u8], comments: bool) -> Reading {
    initialize();
    let log = Log::new(usize::MAX);
    let Ok(length) = i32::try_from(document.len()) else { return Reading::Refused("it is too large".to_owned()) };
    // SAFETY: `document` and `log` outlive the calls. The parser, the document and the output are freed once, the last
    // by libxml's own function for that; the error handler is set back.
    let canonical = unsafe {
        c::xmlSetStructuredErrorFunc(log.context(), handler());
        let parser = c::xmlNewParserCtxt();
        let options = c::xmlParserOption_XML_PARSE_NONET as i32;
        let doc = c::xmlCtxtReadMemory(parser, document.as_ptr().cast(), length, ptr::null(), ptr::null(), options);
        let well_formed = !doc.is_null() && (*parser).wellFormed == 1 && (*parser).nsWellFormed == 1;
        c::xmlFreeParserCtxt(parser);
        let canonical = well_formed.then(|| dump(doc, comments));
        if !doc.is_null() {
            c::xmlFreeDoc(doc);
        }
        c::xmlSetStructuredErrorFunc(ptr::null_mut(), None);
        canonical
    };
    match canonical {
        Some(canonical) => Reading::Canonical(canonical),
        None => {
            let said = log.entries.into_inner().into_iter().next().map(|entry| entry.message);
            Reading::Refused(said.unwrap_or_default().trim().to_owned())
        }
    }
}

/// # Safety
/// `doc` is a document.
unsafe fn dump(doc: c::xmlDocPtr, comments: bool) -> Option<Vec<u8>> {
    let (mode, mut bytes) = (c::xmlC14NMode_XML_C14N_EXCLUSIVE_1_0 as i32, ptr::null_mut());
    // SAFETY: the output has `length` bytes, which are copied before they are freed.
    unsafe {
        let length =
            c::xmlC14NDocDumpMemory(doc, ptr::null_mut(), mode, ptr::null_mut(), i32::from(comments), &raw mut bytes);
        let canonical = usize::try_from(length).ok().filter(|_| !bytes.is_null());
        let canonical = canonical.map(|length| std::slice::from_raw_parts(bytes, length).to_vec());
        if let (false, Some(free)) = (bytes.is_null(), c::xmlFree) {
            free(bytes.cast());
        }
        canonical
    }
}

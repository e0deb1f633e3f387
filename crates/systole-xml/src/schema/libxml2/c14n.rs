//! Canonicalization of whole documents by libxml: an oracle for tests of the strict pass, never a part of the pump.

use std::ffi::CString;
use std::ptr;

use super::{Log, c, handler, initialize};
use crate::ladder::strict::CanonicalOptions;

/// The result of libxml.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) enum Reading {
    /// Not well-formed, by XML or by Namespaces in XML, with the first message.
    Refused(String),
    /// Exclusive C14N 1.0 of the document; `None` if libxml makes none, because a namespace name is relative.
    Canonical(Option<Vec<u8>>),
}

/// Parses a document without DTD, external parts or recovery, and canonicalizes it.
pub(in crate::schema) fn read(document: &[u8], form: CanonicalOptions) -> Reading {
    initialize();
    let log = Log::default();
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
        let canonical = well_formed.then(|| dump(doc, form));
        if !doc.is_null() {
            c::xmlFreeDoc(doc);
        }
        c::xmlSetStructuredErrorFunc(ptr::null_mut(), None);
        canonical
    };
    match canonical {
        Some(canonical) => Reading::Canonical(canonical),
        None => {
            let said = log.0.into_inner().into_iter().next().map(|fault| fault.message);
            Reading::Refused(said.unwrap_or_default())
        }
    }
}

/// # Safety
/// `doc` is a document.
unsafe fn dump(doc: c::xmlDocPtr, form: CanonicalOptions) -> Option<Vec<u8>> {
    let prefixes = form.prefixes.iter().map(|prefix| CString::new(*prefix)).collect::<Result<Vec<_>, _>>().ok()?;
    let mut list: Vec<_> = prefixes.iter().map(|prefix| prefix.as_ptr().cast_mut().cast()).collect();
    list.push(ptr::null_mut());
    let comments = i32::from(form.comments);
    let (mode, mut bytes) = (c::xmlC14NMode_XML_C14N_EXCLUSIVE_1_0 as i32, ptr::null_mut());
    // SAFETY: the list ends with a null and outlives the call, which only reads it; the output has `length` bytes,
    // which are copied before they are freed.
    unsafe {
        let length = c::xmlC14NDocDumpMemory(doc, ptr::null_mut(), mode, list.as_mut_ptr(), comments, &raw mut bytes);
        let canonical = usize::try_from(length).ok().filter(|_| !bytes.is_null());
        let canonical = canonical.map(|length| std::slice::from_raw_parts(bytes, length).to_vec());
        if let (false, Some(free)) = (bytes.is_null(), c::xmlFree) {
            free(bytes.cast());
        }
        canonical
    }
}

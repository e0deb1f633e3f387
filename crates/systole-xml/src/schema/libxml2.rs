//! The only module that names libxml: it compiles schemas and validates documents by them, beside the engine.
//!
//! It reads nothing but the given texts. While a schema is compiled, a loader of this module replaces libxml's own,
//! which would read files and the network; it knows only those texts (libxml asks the
//! file system whether their made-up names exist, but opens nothing). It prints nothing: every error is returned as a
//! value.
//!
//! It does *not* judge messages, or bound the time that libxml takes: some schemas never end.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, OnceLock, PoisonError};

use libxml::bindings as c;
use libxml::schemas::{SchemaParserContext, SchemaValidationContext};

/// A schema document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// The name that a `schemaLocation` gives it.
    pub(super) url: String,
    pub(super) text: String,
}

/// An error that libxml reports of a schema or a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The `url` of the source; `None` for the main one.
    pub(super) url: Option<String>,
    pub(super) line: u32,
    pub(super) message: String,
}

/// A compiled schema, for the OS thread that compiled it.
#[derive(Debug)]
pub(super) struct Compiled(NonNull<c::xmlSchema>);

impl Compiled {
    /// Compiles `main`, whose `schemaLocation`s name the other sources.
    pub(super) fn new(main: &str, others: &[Source]) -> Result<Self, Vec<Fault>> {
        initialize();
        // Compiling is rare, and libxml doesn't document whether several OS threads may compile at once.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let scope = LoaderScope::enter(others);
        let log = Log::default();
        let length = c_int::try_from(main.len()).map_err(|_| vec![Fault::internal("the schema is too large")])?;
        // SAFETY: `main` lives until the parser context is freed below, `log` and the loader's sources longer; the
        // handlers are set back before that.
        let schema = unsafe {
            c::xmlSetStructuredErrorFunc(log.context(), handler());
            let parser = c::xmlSchemaNewMemParserCtxt(main.as_ptr().cast(), length);
            let mut schema = ptr::null_mut();
            if !parser.is_null() {
                c::xmlSchemaSetParserStructuredErrors(parser, handler(), log.context());
                schema = c::xmlSchemaParse(parser);
                c::xmlSchemaFreeParserCtxt(parser);
            }
            c::xmlSetStructuredErrorFunc(ptr::null_mut(), None);
            schema
        };
        drop(scope);
        let faults = log.0.into_inner();
        match NonNull::new(schema) {
            Some(schema) => Ok(Self(schema)),
            None if faults.is_empty() => Err(vec![Fault::internal("the schema can't be compiled")]),
            None => Err(faults),
        }
    }

    /// Validates a document; the error is the first one that libxml reports. Hints in the document load nothing.
    pub(super) fn validate(&self, document: &str) -> Result<(), Fault> {
        let log = Log::default();
        let length = c_int::try_from(document.len()).map_err(|_| Fault::internal("the document is too large"))?;
        // Outside of a scope, libxml would load the documents that hints name.
        let scope = LoaderScope::enter(&[]);
        // SAFETY: the text and `log` outlive the calls. The context is used with the schema that it was made for, which
        // outlives it; context, parser and document are freed once, and the error handler is set back.
        let valid = unsafe {
            c::xmlSetStructuredErrorFunc(log.context(), handler());
            let parser = c::xmlNewParserCtxt();
            let options = c::xmlParserOption_XML_PARSE_NONET as i32;
            let doc = c::xmlCtxtReadMemory(parser, document.as_ptr().cast(), length, ptr::null(), ptr::null(), options);
            c::xmlFreeParserCtxt(parser);
            let context = if doc.is_null() { ptr::null_mut() } else { c::xmlSchemaNewValidCtxt(self.0.as_ptr()) };
            let mut valid = false;
            if !context.is_null() {
                c::xmlSchemaSetValidStructuredErrors(context, handler(), log.context());
                valid = c::xmlSchemaValidateDoc(context, doc) == 0;
                c::xmlSchemaFreeValidCtxt(context);
            }
            if !doc.is_null() {
                c::xmlFreeDoc(doc);
            }
            c::xmlSetStructuredErrorFunc(ptr::null_mut(), None);
            valid
        };
        drop(scope);
        let said = log.0.into_inner().into_iter().next();
        if valid { Ok(()) } else { Err(said.unwrap_or_else(|| Fault::internal("the validator gave up"))) }
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `xmlSchemaParse` and is freed once; validation contexts don't outlive calls.
        unsafe { c::xmlSchemaFree(self.0.as_ptr()) }
    }
}

/// The version of the libxml2 that the program is built with.
pub(super) fn version() -> String {
    format!("libxml2 {}", CStr::from_bytes_with_nul(c::LIBXML_DOTTED_VERSION).unwrap_or_default().to_string_lossy())
}

/// The errors that the handler received.
#[derive(Default)]
struct Log(RefCell<Vec<Fault>>);

impl Log {
    fn context(&self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }
}

impl Fault {
    fn internal(message: &str) -> Self {
        Self { url: None, line: 0, message: message.to_owned() }
    }
}

/// The handler in the type of the libxml at hand: from 2.12 on the error is const.
fn handler() -> c::xmlStructuredErrorFunc {
    type Handler = Option<unsafe extern "C" fn(*mut c_void, *const c::xmlError)>;
    // SAFETY: the two function types differ only in whether the error may be written, which it isn't.
    unsafe { std::mem::transmute::<Handler, c::xmlStructuredErrorFunc>(Some(on_error)) }
}

/// # Safety
/// `context` points to a [`Log`] of this OS thread, `error` to an error or is null.
unsafe extern "C" fn on_error(context: *mut c_void, error: *const c::xmlError) {
    // SAFETY: as the caller promises.
    let (Some(log), Some(error)) = (unsafe { context.cast::<Log>().as_ref() }, unsafe { error.as_ref() }) else {
        return;
    };
    if error.level < c::xmlErrorLevel_XML_ERR_ERROR {
        return;
    }
    // SAFETY: libxml's errors hold C strings or null.
    let (file, message) = unsafe { (string(error.file), string(error.message)) };
    // libxml makes up a name for a source that was given as text.
    let url = Some(file).filter(|file| !file.is_empty() && file != "in_memory_buffer");
    let line = u32::try_from(error.line).unwrap_or(0);
    log.0.borrow_mut().push(Fault { url, line, message: message.trim().to_owned() });
}

/// # Safety
/// `text` is a C string or null.
unsafe fn string(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

pub(super) mod c14n;

static DEFAULT_LOADER: OnceLock<c::xmlExternalEntityLoader> = OnceLock::new();

/// Initializes libxml, once for all OS threads, and installs this module's loader in place of its own.
fn initialize() {
    DEFAULT_LOADER.get_or_init(|| {
        // The crate initializes the built-in types under a lock of its own, when it first compiles a schema.
        let mut trivial = SchemaParserContext::from_buffer("<schema xmlns=\"http://www.w3.org/2001/XMLSchema\"/>");
        drop(SchemaValidationContext::from_parser(&mut trivial));
        // SAFETY: libxml is initialized, and no other OS thread of this process is past this point.
        unsafe {
            let default = c::xmlGetExternalEntityLoader();
            c::xmlSetExternalEntityLoader(Some(load));
            default
        }
    });
}

thread_local! {
    /// The only documents that this OS thread may load; `None` while it compiles nothing.
    static LOADABLE: RefCell<Option<Vec<(CString, CString)>>> = const { RefCell::new(None) };
}

/// A scope in which this OS thread loads only the given sources.
struct LoaderScope;

impl LoaderScope {
    fn enter(sources: &[Source]) -> Self {
        // A text with a NUL is no XML: it is left out.
        let strings = |s: &Source| Some((CString::new(s.url.as_str()).ok()?, CString::new(s.text.as_str()).ok()?));
        LOADABLE.set(Some(sources.iter().filter_map(strings).collect()));
        Self
    }
}

impl Drop for LoaderScope {
    fn drop(&mut self) {
        LOADABLE.set(None);
    }
}

/// Loads a source of this OS thread's scope; outside of a scope, calls the default loader.
///
/// # Safety
/// libxml calls it as documented for `xmlExternalEntityLoader`.
unsafe extern "C" fn load(url: *const c_char, id: *const c_char, parser: c::xmlParserCtxtPtr) -> c::xmlParserInputPtr {
    LOADABLE.with_borrow(|loadable| {
        let Some(sources) = loadable else {
            // SAFETY: the arguments are handed on as they came.
            return match DEFAULT_LOADER.get() {
                Some(Some(default)) => unsafe { default(url, id, parser) },
                _ => ptr::null_mut(),
            };
        };
        if url.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: the name is a C string.
        let name = unsafe { CStr::from_ptr(url) };
        let Some((name, text)) = sources.iter().find(|(known, _)| known.as_c_str() == name) else {
            return ptr::null_mut();
        };
        // SAFETY: the text lives until the scope ends, after the parser; libxml frees the copy of the name.
        unsafe {
            let input = c::xmlNewStringInputStream(parser, text.as_ptr().cast());
            if !input.is_null() {
                (*input).filename = c::xmlStrdup(name.as_ptr().cast()).cast();
            }
            input
        }
    })
}

#[cfg(test)]
pub(in crate::schema) mod tests;

//! The only module that knows libxml: it compiles schemas and judges payloads.
//!
//! What always holds: nothing is read but the texts that are given. While a schema is compiled, a loader of ours
//! stands in for libxml's, which would read files and the network, and it knows only those texts (libxml asks the
//! file system whether their made-up names exist, but opens nothing). A payload is
//! not parsed here: its events go straight into the validator, which never follows `xsi:schemaLocation`, because
//! it has a schema. Nothing is printed: every error comes back as a value.
//!
//! What it does not do: share a compiled schema between threads. libxml doesn't say that it may be.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, OnceLock, PoisonError};

use libxml::bindings as c;
use libxml::schemas::{SchemaParserContext, SchemaValidationContext};

use super::events::{Event, Events, Text};

/// A schema document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// What a `schemaLocation` calls it.
    pub(super) url: String,
    pub(super) text: String,
}

/// What libxml says is wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The `url` of the source; `None` for the main one.
    pub(super) url: Option<String>,
    pub(super) line: u32,
    pub(super) message: String,
}

/// What libxml says is wrong with a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    /// The element, counted in document order from 0.
    pub(super) element: usize,
    pub(super) message: String,
}

/// A compiled schema, for the thread that compiled it.
#[derive(Debug)]
pub(super) struct Compiled(NonNull<c::xmlSchema>);

impl Compiled {
    /// Compiles `main`, whose `schemaLocation`s name the other sources.
    pub(super) fn new(main: &str, others: &[Source]) -> Result<Self, Vec<Fault>> {
        initialize();
        // Compiling is rare, and libxml says nothing of doing it on several threads at once.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let scope = LoaderScope::enter(others);
        let log = Log::new(usize::MAX);
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
        let faults: Vec<Fault> = log.entries.into_inner().into_iter().map(Entry::fault).collect();
        match NonNull::new(schema) {
            Some(schema) => Ok(Self(schema)),
            None if faults.is_empty() => Err(vec![Fault::internal("the schema can't be compiled")]),
            None => Err(faults),
        }
    }

    /// Judges a payload; stops at the `most`-th violation.
    pub(super) fn validate(&self, events: &Events, most: usize) -> Vec<Violation> {
        let log = Log::new(most);
        // SAFETY: the context is used with the schema that it was made for, which outlives it, and freed here.
        // `log` outlives it too.
        let valid = unsafe {
            let context = c::xmlSchemaNewValidCtxt(self.0.as_ptr());
            if context.is_null() {
                return vec![Violation::internal()];
            }
            c::xmlSchemaSetValidStructuredErrors(context, handler(), log.context());
            let valid = feed(context, events, &log);
            c::xmlSchemaFreeValidCtxt(context);
            valid
        };
        let mut violations: Vec<Violation> = log.entries.into_inner().into_iter().map(Entry::violation).collect();
        if !valid && violations.is_empty() {
            violations.push(Violation::internal());
        }
        violations
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `xmlSchemaParse` and is freed once; validation contexts don't outlive calls.
        unsafe { c::xmlSchemaFree(self.0.as_ptr()) }
    }
}

/// Feeds the events to a validator through the handlers that it offers a parser; says whether all were valid.
///
/// # Safety
/// `context` is a validation context without a document, whose errors go to `log`.
unsafe fn feed(context: c::xmlSchemaValidCtxtPtr, events: &Events, log: &Log) -> bool {
    let arena = events.arena();
    let text = |at: u32| -> *const c::xmlChar { arena[at as usize..].as_ptr() };
    let maybe = |at: Text| at.map_or(ptr::null(), text);
    let (mut sax, mut user) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: both pointers are valid until `xmlSchemaSAXUnplug`; `sax` null means that there is nobody else to call.
    let plug = unsafe { c::xmlSchemaSAXPlug(context, &raw mut sax, &raw mut user) };
    if plug.is_null() {
        return false;
    }
    // SAFETY: after plugging, `sax` points to the handlers of the validator.
    let (start, characters, end) = unsafe { ((*sax).startElementNs, (*sax).characters, (*sax).endElementNs) };
    let (Some(start), Some(characters), Some(end)) = (start, characters, end) else { return false };
    let (mut declarations, mut attributes) = (events.declarations().iter(), events.attributes().iter());
    let mut elements = 0;
    let mut open = Vec::new();
    let (mut pairs, mut quintuples) = (Vec::new(), Vec::new());
    for event in events.events() {
        match *event {
            Event::Start { local, namespace, declarations: declared, attributes: given } => {
                log.element.set(elements);
                open.push(elements);
                elements += 1;
                pairs.clear();
                for &(prefix, uri) in declarations.by_ref().take(declared as usize) {
                    pairs.extend([maybe(prefix), text(uri)]);
                }
                quintuples.clear();
                for a in attributes.by_ref().take(given as usize) {
                    let value = text(a.value);
                    // The end of a value is a pointer behind it: the NUL there is in the arena too.
                    let behind = text(a.value + a.value_len);
                    quintuples.extend([text(a.local), maybe(a.prefix), maybe(a.namespace), value, behind]);
                }
                let (declared, given) = (count(declared), count(given));
                // SAFETY: all strings are NUL-terminated in the arena, which stays as it is until the validator is
                // unplugged (it keeps the pointers to names, not those to the two lists).
                unsafe {
                    start(
                        user,
                        text(local),
                        ptr::null(),
                        maybe(namespace),
                        declared,
                        pairs.as_mut_ptr(),
                        given,
                        0,
                        quintuples.as_mut_ptr(),
                    );
                }
            }
            // SAFETY: `len` bytes from `start` are in the arena; they are copied.
            Event::Text { start, len } => unsafe { characters(user, text(start), count(len)) },
            Event::End { local, namespace } => {
                log.element.set(open.pop().unwrap_or_default());
                // SAFETY: as for the start tag.
                unsafe { end(user, text(local), ptr::null(), maybe(namespace)) }
                log.element.set(open.last().copied().unwrap_or_default());
            }
        }
        if log.is_full() {
            break;
        }
    }
    // SAFETY: `context` is still plugged; unplugging frees the plug and all that the run has allocated.
    unsafe {
        let valid = c::xmlSchemaIsValid(context) == 1;
        c::xmlSchemaSAXUnplug(plug);
        valid
    }
}

fn count(count: u32) -> c_int {
    c_int::try_from(count).expect("a payload is smaller than 2 GiB")
}

/// What the error handler has heard.
struct Log {
    entries: RefCell<Vec<Entry>>,
    most: usize,
    /// The element that is being judged.
    element: Cell<usize>,
}

struct Entry {
    element: usize,
    file: Option<String>,
    line: u32,
    message: String,
}

impl Log {
    fn new(most: usize) -> Self {
        Self { entries: RefCell::default(), most, element: Cell::new(0) }
    }

    fn is_full(&self) -> bool {
        self.entries.borrow().len() >= self.most
    }

    fn context(&self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }
}

impl Entry {
    fn fault(self) -> Fault {
        Fault { url: self.file, line: self.line, message: self.message }
    }

    fn violation(self) -> Violation {
        Violation { element: self.element, message: self.message }
    }
}

impl Fault {
    fn internal(message: &str) -> Self {
        Self { url: None, line: 0, message: message.to_owned() }
    }
}

impl Violation {
    fn internal() -> Self {
        Self { element: 0, message: "the validator gave up".to_owned() }
    }
}

/// The handler in the type of the libxml at hand: from 2.12 on the error is const.
fn handler() -> c::xmlStructuredErrorFunc {
    type Handler = Option<unsafe extern "C" fn(*mut c_void, *const c::xmlError)>;
    // SAFETY: the two function types differ only in whether the error may be written, which it isn't.
    unsafe { std::mem::transmute::<Handler, c::xmlStructuredErrorFunc>(Some(on_error)) }
}

/// # Safety
/// `context` points to a [`Log`] of this thread, `error` to an error or is null.
unsafe extern "C" fn on_error(context: *mut c_void, error: *const c::xmlError) {
    // SAFETY: as the caller promises.
    let (Some(log), Some(error)) = (unsafe { context.cast::<Log>().as_ref() }, unsafe { error.as_ref() }) else {
        return;
    };
    if error.level < c::xmlErrorLevel_XML_ERR_ERROR || log.is_full() {
        return;
    }
    // SAFETY: libxml's errors hold C strings or null.
    let (file, message) = unsafe { (string(error.file), string(error.message)) };
    // What was given as text has a name that libxml made up.
    let file = Some(file).filter(|file| !file.is_empty() && file != "in_memory_buffer");
    let line = u32::try_from(error.line).unwrap_or(0);
    log.entries.borrow_mut().push(Entry { element: log.element.get(), file, line, message });
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

/// Initializes libxml, once for all threads, and puts our loader in front of its own.
fn initialize() {
    DEFAULT_LOADER.get_or_init(|| {
        // The crate initializes the built-in types under a lock of its own, when it first compiles a schema.
        let mut trivial = SchemaParserContext::from_buffer("<schema xmlns=\"http://www.w3.org/2001/XMLSchema\"/>");
        drop(SchemaValidationContext::from_parser(&mut trivial));
        // SAFETY: libxml is initialized, and no other thread of ours is past this point.
        unsafe {
            let default = c::xmlGetExternalEntityLoader();
            c::xmlSetExternalEntityLoader(Some(load));
            default
        }
    });
}

thread_local! {
    /// The only documents that this thread may load; `None` while it compiles nothing.
    static LOADABLE: RefCell<Option<Vec<(CString, CString)>>> = const { RefCell::new(None) };
}

/// While it lives, this thread loads the given sources and nothing else.
struct LoaderScope;

impl LoaderScope {
    fn enter(sources: &[Source]) -> Self {
        // A text with a NUL is no XML; then it is not there.
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

/// Loads a source of this thread's scope; out of a scope, what the process would have loaded without us.
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

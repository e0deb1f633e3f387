//! Fuzz target of canonicalization.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::ladder::properties::c14n(data));

//! Fuzz target of validation.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::schema::properties::validation(data));

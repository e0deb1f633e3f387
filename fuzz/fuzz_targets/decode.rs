//! Fuzz target of decoding of payloads.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::schema::properties::decoding(data));

//! Fuzz target of payloads as JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::schema::properties::json(data));

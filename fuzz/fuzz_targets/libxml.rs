//! Fuzz target of the comparison with libxml2.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::schema::properties::libxml(data));

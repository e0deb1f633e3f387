//! Fuzz target of the strict pass.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::ladder::properties::strict(data));

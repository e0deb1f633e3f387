//! Fuzz target of the searches in blocks of bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::ladder::properties::blocks(data));

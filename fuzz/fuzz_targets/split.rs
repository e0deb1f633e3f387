//! Fuzz target of the split of a stream into messages.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::ladder::properties::split(data));

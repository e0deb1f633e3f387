//! Fuzz target of envelopes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::ladder::properties::envelope(data));

//! Fuzz target of files with transcripts.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole_xml::ladder::properties::transcript(data));

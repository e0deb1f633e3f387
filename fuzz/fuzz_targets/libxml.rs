#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole::schema::properties::libxml(data));

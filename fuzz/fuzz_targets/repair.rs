#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systole::ladder::properties::repair(data));

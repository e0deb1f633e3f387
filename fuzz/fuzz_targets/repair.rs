#![no_main]

#[path = "../../tests/repair/judge.rs"]
mod judge;
#[path = "../../tests/repair/meaning.rs"]
mod meaning;
#[path = "../../tests/repair/property.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));

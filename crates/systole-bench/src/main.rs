//! The program `systole-bench`: `cargo run --release --package systole-bench`.

use std::process::ExitCode;

use clap::Parser;

/// The allocator of the program `systole`.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    systole_bench::main(&systole_bench::Options::parse())
}

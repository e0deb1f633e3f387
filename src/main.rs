//! The `systole` program; everything in it is [`systole::cli`].

use std::process::ExitCode;

/// Faster than the system's where many threads hand messages to each other.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    systole::cli::main()
}

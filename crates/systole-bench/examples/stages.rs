//! Runs each stage of the ladder on each message of `systole-bench` in a function of its own, for counts of instructions:
//! `stages TIMES`. Prints the message and the stage of each call of that function, in order; `scripts/count-stages` reads
//! the counts of callgrind beside them.

use std::hint::black_box;
use std::process::ExitCode;

use systole_bench::{Side, specimens};

/// The runs before those that count, for what is made once.
const WARM_UP: usize = 20;

fn main() -> ExitCode {
    let Some(times) = std::env::args().nth(1).and_then(|times| times.parse::<usize>().ok()) else {
        eprintln!("error: write `stages TIMES`");
        return ExitCode::from(2);
    };
    for specimen in specimens() {
        let stages = specimen.stages().expect("the payloads are contracts");
        for mut stage in stages.into_iter().filter(|stage| stage.side == Side::Systole) {
            (0..WARM_UP).for_each(|_| stage.run());
            counted(times, &mut || stage.run());
            println!("{} | {}", specimen.name, stage.name);
        }
    }
    ExitCode::SUCCESS
}

/// The calls that are counted: callgrind finds them by the name of this function.
#[inline(never)]
fn counted(times: usize, run: &mut dyn FnMut()) {
    for _ in 0..times {
        run();
    }
    black_box(times);
}

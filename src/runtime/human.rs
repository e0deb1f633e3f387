//! Listeners whose handlers are people, who see a question on the terminal and answer at the keyboard.

mod console;
mod listener;
mod questions;

pub use console::{Console, PrintText};
pub use listener::HumanListener;

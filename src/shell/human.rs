//! Listeners that are people: they see a question on the terminal and answer it at the keyboard.

mod console;
mod listener;
mod questions;

pub use console::{Console, Paper};
pub use listener::HumanListener;

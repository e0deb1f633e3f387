//! Listeners whose handlers are people, who see a question on the terminal and answer at the keyboard.

mod console;
mod keyboard;
mod listener;
mod questions;

pub use console::{Console, PrintText};
pub use keyboard::Keyboard;
pub use listener::HumanListener;

//! The journal on disk: it must say what the one in memory says, whatever happens to its file.

mod damage;
mod files;
mod kill;
mod mail;
mod model;
mod story;
mod takeover;

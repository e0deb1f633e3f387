//! The journal on disk: it must report what the one in memory reports, whatever happens to its file.

mod damage;
mod files;
mod kill;
mod mail;
mod model;
mod story;
mod takeover;

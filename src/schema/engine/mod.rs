//! The engine that judges payloads by compiled schemas.

mod simple;

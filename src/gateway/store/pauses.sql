-- Version 4. Remote listeners whose agents are told to rest, and since when.
CREATE TABLE pause (name TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

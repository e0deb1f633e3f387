-- Version 11: the organism that the journal belongs to, written by its first start. The row is in no total.
CREATE TABLE organism (
    id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, uuid BLOB NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

-- Version 2: marks on dead letters that the next start redrives.
CREATE TABLE requeue (letter INTEGER PRIMARY KEY, sum INTEGER NOT NULL, at INTEGER NOT NULL) STRICT;

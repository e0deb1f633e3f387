-- Version 2: dead letters that the next start queues again.
CREATE TABLE requeue (letter INTEGER PRIMARY KEY, sum INTEGER NOT NULL, at INTEGER NOT NULL) STRICT;

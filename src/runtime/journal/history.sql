-- Version 4: forgotten entries of a context are kept for a while, as all ended rows are, and `horizon` tells since when
-- nothing is missing: rows that ended by then may be deleted.
ALTER TABLE remembered ADD COLUMN ended INTEGER;
DROP INDEX remembered_thread;
CREATE INDEX remembered_ended ON remembered (ended, thread);
CREATE TABLE horizon (
    id INTEGER PRIMARY KEY CHECK (id = 1), ended INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

-- Version 4: what a context has forgotten stays for a while, as all that is over does, and `horizon` says since when
-- nothing is missing: rows that ended up to then may be gone.
ALTER TABLE remembered ADD COLUMN ended INTEGER;
DROP INDEX remembered_thread;
CREATE INDEX remembered_ended ON remembered (ended, thread);
CREATE TABLE horizon (
    id INTEGER PRIMARY KEY CHECK (id = 1), ended INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

-- Version 3: the tasks of inboxes, and state that listeners keep.
CREATE TABLE task (
    inbox TEXT NOT NULL, id BLOB NOT NULL, place INTEGER NOT NULL, state TEXT NOT NULL, body TEXT NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (inbox, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE state (
    listener TEXT PRIMARY KEY, blob BLOB NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

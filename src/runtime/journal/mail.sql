-- Version 5: the mailboxes of remote listeners, submissions of clients, and principals.
-- A message never changes, its status does: a lease does not write the envelope again. A row of `mail` ends when its
-- status does. `due` is empty while a reader holds the message without a time limit.
CREATE TABLE mail (
    seq INTEGER PRIMARY KEY, mailbox TEXT NOT NULL, id BLOB NOT NULL, thread BLOB NOT NULL, sender TEXT NOT NULL,
    in_reply_to BLOB, payload TEXT NOT NULL, came INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL,
    envelope TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX mail_id ON mail (id);
CREATE INDEX mail_place ON mail (mailbox, seq);

CREATE TABLE mail_status (
    seq INTEGER PRIMARY KEY, state TEXT NOT NULL, deliveries INTEGER NOT NULL, due INTEGER, receipt BLOB,
    spent INTEGER NOT NULL, error TEXT, answer BLOB,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX mail_status_ended ON mail_status (ended);

-- Numbers that have left a mailbox: the greatest that retention deleted, and the greatest of all.
CREATE TABLE mail_gone (
    mailbox TEXT PRIMARY KEY, pruned INTEGER NOT NULL, last INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Remote listeners: since when an operator has them paused, and their last registration.
CREATE TABLE agent (
    name TEXT PRIMARY KEY, paused INTEGER, registered INTEGER, mode TEXT, url TEXT, declared TEXT,
    sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `root` is the conversation, whose answers are in `egress`; `digest` is the BLAKE3 hash of the body sent under `key`.
CREATE TABLE submission (
    id BLOB PRIMARY KEY, client TEXT NOT NULL, root BLOB NOT NULL, key TEXT, digest BLOB,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX submission_ended ON submission (ended, root);
CREATE INDEX submission_key ON submission (client, key) WHERE key IS NOT NULL;
CREATE INDEX egress_root ON egress (root);

-- `token` is the BLAKE3 hash of a principal's token. Other processes write here while the organism runs: these rows are
-- not in the total of `meta`.
CREATE TABLE principal (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, created INTEGER NOT NULL, token BLOB NOT NULL UNIQUE,
    sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row once the files of an older organism, `….gateway` and `….outbox`, were read into this one.
CREATE TABLE taken_over (
    id INTEGER PRIMARY KEY CHECK (id = 1), sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

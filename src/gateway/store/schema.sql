-- Version 1. Ids are 16 bytes, times are nanoseconds since 1970 in UTC, envelopes are text.
CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT;

-- Who may come in: `token` is the BLAKE3 hash of what they show.
CREATE TABLE principal (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, token BLOB NOT NULL UNIQUE, created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Remote listeners that have said they are there.
CREATE TABLE listener (name TEXT PRIMARY KEY, mode TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Up to which place something of a mailbox was forgotten.
CREATE TABLE pruned (mailbox TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- A message for a remote listener. `live`: its handler waits in this run of the organism. `due`: it can be leased
-- from then on. `receipt`: of the last lease. `answer`: what the handler ends with.
CREATE TABLE item (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, mailbox TEXT NOT NULL, id BLOB NOT NULL UNIQUE, thread BLOB NOT NULL,
    sender TEXT NOT NULL, in_reply_to BLOB, type TEXT NOT NULL, envelope TEXT NOT NULL, at INTEGER NOT NULL,
    state TEXT NOT NULL, live INTEGER NOT NULL, deliveries INTEGER NOT NULL, due INTEGER NOT NULL, receipt BLOB,
    error TEXT, answer BLOB, ended INTEGER
) STRICT;
CREATE INDEX item_place ON item (mailbox, seq);
CREATE INDEX item_open ON item (mailbox, seq) WHERE state = 'waiting';
CREATE INDEX item_due ON item (mailbox, due) WHERE state = 'waiting' AND live > 0;
CREATE INDEX item_lapse ON item (due) WHERE state = 'waiting' AND live > 0;
CREATE INDEX item_left ON item (at) WHERE state = 'waiting' AND live = 0;
CREATE INDEX item_ended ON item (ended) WHERE ended IS NOT NULL;

-- A message of a client. `accepted`: it is kept here alone; `queued`: the organism has it.
CREATE TABLE sent (
    id BLOB PRIMARY KEY, principal TEXT NOT NULL, root BLOB NOT NULL, envelope TEXT NOT NULL, at INTEGER NOT NULL,
    state TEXT NOT NULL, attempts INTEGER NOT NULL, error TEXT, ended INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sent_accepted ON sent (at) WHERE state = 'accepted';
CREATE INDEX sent_silent ON sent (at) WHERE ended IS NULL AND state = 'queued';
CREATE INDEX sent_ended ON sent (ended) WHERE ended IS NOT NULL;

-- What came back; `number` is that of the organism's journal.
CREATE TABLE answer (
    message BLOB NOT NULL, number INTEGER NOT NULL, sender TEXT NOT NULL, type TEXT NOT NULL, envelope TEXT NOT NULL,
    fault TEXT, at INTEGER NOT NULL, PRIMARY KEY (message, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    principal TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, message BLOB NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_message ON idempotency (message);

-- Version 1. Ids are 16 bytes (`hex(id)` shows them), times are nanoseconds since 1970 in UTC, payloads are text.
-- `sum` is the checksum of the row; `at` is when the row came, `ended` when it ended.
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL, epoch INTEGER NOT NULL, running INTEGER NOT NULL,
    total INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

CREATE TABLE thread (
    number INTEGER PRIMARY KEY, id BLOB NOT NULL, parent INTEGER, root INTEGER NOT NULL, listener TEXT, client TEXT,
    ordinal INTEGER NOT NULL, depth INTEGER NOT NULL, opened_by BLOB NOT NULL, origin TEXT, deadline INTEGER,
    own_deadline INTEGER NOT NULL, spawned INTEGER NOT NULL, gone INTEGER NOT NULL, label TEXT, traceparent TEXT,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX thread_ended ON thread (ended, root);

CREATE TABLE message (
    number INTEGER PRIMARY KEY, place INTEGER NOT NULL, thread INTEGER NOT NULL, id BLOB NOT NULL,
    sender TEXT NOT NULL, in_reply_to BLOB, answers TEXT, state TEXT NOT NULL, due INTEGER, owes TEXT,
    kind TEXT NOT NULL, body TEXT NOT NULL, attempts INTEGER NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER, ending TEXT
) STRICT;
CREATE INDEX message_ended ON message (ended, thread);

-- `call` is -1 for the calls of a response, which no handler awaits.
CREATE TABLE fan (
    message INTEGER NOT NULL, call INTEGER NOT NULL, thread INTEGER NOT NULL, source BLOB NOT NULL,
    total INTEGER NOT NULL, delivered INTEGER NOT NULL, counted_off INTEGER NOT NULL, requests TEXT, awaited TEXT,
    outcome TEXT, decided INTEGER, result TEXT,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER, PRIMARY KEY (message, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX fan_ended ON fan (ended, thread);

CREATE TABLE settled (
    message INTEGER NOT NULL, call INTEGER NOT NULL, place INTEGER NOT NULL, extra INTEGER NOT NULL,
    answer_to INTEGER NOT NULL, sender TEXT, payload TEXT, fault TEXT,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER, PRIMARY KEY (message, call, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX settled_ended ON settled (ended);

CREATE TABLE note (
    message INTEGER NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER, PRIMARY KEY (message, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX note_ended ON note (ended);

CREATE TABLE remembered (
    number INTEGER PRIMARY KEY, thread INTEGER NOT NULL, sender TEXT NOT NULL, payload TEXT NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;
CREATE INDEX remembered_thread ON remembered (thread);

CREATE TABLE egress (
    number INTEGER PRIMARY KEY, client TEXT NOT NULL, root BLOB NOT NULL, sender TEXT NOT NULL, in_reply_to TEXT,
    envelope TEXT NOT NULL, fault TEXT, payload TEXT NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX egress_ended ON egress (ended);

CREATE TABLE letter (
    number INTEGER PRIMARY KEY, buried INTEGER NOT NULL, sender TEXT NOT NULL, target TEXT, path TEXT NOT NULL,
    qname TEXT, payload TEXT, reason TEXT NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

-- Ids are 16 bytes (`hex(id)` shows them), times are nanoseconds since 1970 in UTC, payloads are text.
-- `sum` is the checksum of the row; `at` is when the row came, `ended` when it ended.
-- Each record has a partition. That of a conversation is the last byte of the id of its root (0 for the conversations of
-- `<boot>`), for good. Every record of a conversation leads to its root by keys that it has anyway and that its sum
-- covers: `thread.root`, `thread` of messages, fan-outs, budgets and contexts, `message` of notes and answers, `root` of
-- egress and submissions. So it is no column there: a copy in each row would have to be kept equal, and reading a
-- partition from its roots down needs no index on one. Only a dead letter leads to no root, and has `part`.

-- `running` is 1 while a start runs and after a crash, plus 2 for each batch. `total` is the sum of the sums of all open
-- rows, except for those of `organism`, `principal` and `horizon`.
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL, epoch INTEGER NOT NULL, running INTEGER NOT NULL,
    total INTEGER NOT NULL, trusted INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

-- The organism that the journal belongs to, written by its first start.
CREATE TABLE organism (
    id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, uuid BLOB NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

-- Steps that are not in the other tables yet, those of one transaction in a row. `total` is the sum of the sums of all
-- open rows of the other tables.
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, total INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL, steps BLOB NOT NULL
) STRICT;

-- Rows that ended by this time may be deleted.
CREATE TABLE horizon (
    id INTEGER PRIMARY KEY CHECK (id = 1), ended INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;

CREATE TABLE thread (
    number INTEGER PRIMARY KEY, id BLOB NOT NULL, parent INTEGER, root INTEGER NOT NULL, listener TEXT, client TEXT,
    ordinal INTEGER NOT NULL, depth INTEGER NOT NULL, opened_by BLOB NOT NULL, origin TEXT, deadline INTEGER,
    own_deadline INTEGER NOT NULL, spawned INTEGER NOT NULL, gone INTEGER NOT NULL, label TEXT, traceparent TEXT,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX thread_ended ON thread (ended, root);
CREATE INDEX thread_root ON thread (root);

CREATE TABLE message (
    number INTEGER PRIMARY KEY, place INTEGER NOT NULL, thread INTEGER NOT NULL, id BLOB NOT NULL,
    sender TEXT NOT NULL, in_reply_to BLOB, answers TEXT, state TEXT NOT NULL, due INTEGER, owes TEXT,
    kind TEXT NOT NULL, body TEXT NOT NULL, attempts INTEGER NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER, ending TEXT
) STRICT;
CREATE INDEX message_ended ON message (ended, thread);
CREATE INDEX message_thread ON message (thread);

-- The budgets of threads, and what was spent of them: tokens, millionths of the currency, calls, threads.
CREATE TABLE budget (
    thread INTEGER PRIMARY KEY, tokens INTEGER, cost INTEGER, calls INTEGER, threads INTEGER,
    spent_tokens INTEGER NOT NULL, spent_cost INTEGER NOT NULL, spent_calls INTEGER NOT NULL,
    spent_threads INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX budget_ended ON budget (ended);

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

-- Entries of contexts; those that a context has forgotten are kept for a while, as all ended rows are.
CREATE TABLE remembered (
    number INTEGER PRIMARY KEY, thread INTEGER NOT NULL, sender TEXT NOT NULL, payload TEXT NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX remembered_ended ON remembered (ended, thread);

CREATE TABLE egress (
    number INTEGER PRIMARY KEY, client TEXT NOT NULL, root BLOB NOT NULL, sender TEXT NOT NULL, in_reply_to TEXT,
    envelope TEXT NOT NULL, fault TEXT, payload TEXT NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX egress_ended ON egress (ended);
CREATE INDEX egress_root ON egress (root);

-- Dead letters, and marks on those that the next start redrives.
CREATE TABLE letter (
    number INTEGER PRIMARY KEY, buried INTEGER NOT NULL, sender TEXT NOT NULL, target TEXT, path TEXT NOT NULL,
    qname TEXT, payload TEXT, reason TEXT NOT NULL, part INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;
CREATE TABLE requeue (letter INTEGER PRIMARY KEY, sum INTEGER NOT NULL, at INTEGER NOT NULL) STRICT;

-- The tasks of inboxes, and state that listeners keep.
CREATE TABLE task (
    inbox TEXT NOT NULL, id BLOB NOT NULL, place INTEGER NOT NULL, state TEXT NOT NULL, body TEXT NOT NULL,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (inbox, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE state (
    listener TEXT PRIMARY KEY, blob BLOB NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Listeners that an operator has paused.
CREATE TABLE paused (
    listener TEXT PRIMARY KEY, since INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Acts of operators: `about` is the conversation, thread, dead letter, listener or organism, `error` why it had no effect,
-- `opened` the conversation that a retry opened. An act ends when it comes. `place` is its place among
-- those of its step, which has one as a rule.
CREATE TABLE act (
    place INTEGER NOT NULL, operator TEXT NOT NULL, act TEXT NOT NULL, about TEXT NOT NULL, error TEXT, opened BLOB,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER, PRIMARY KEY (at, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX act_ended ON act (ended);

-- The mailboxes of remote listeners. A message never changes, its status does: a lease does not write the envelope again.
-- A row of `mail` ends when its status does. `due` is empty while a reader holds the message without a time limit.
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

-- The addressee of a listener's answers that name none.
CREATE TABLE addressee (
    mailbox TEXT PRIMARY KEY, person TEXT, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Messages of clients. `root` is the conversation, whose answers are in `egress`; `digest` is the BLAKE3 hash of the body
-- sent under `key`.
CREATE TABLE submission (
    id BLOB PRIMARY KEY, client TEXT NOT NULL, root BLOB NOT NULL, key TEXT, digest BLOB,
    sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX submission_ended ON submission (ended, root);
CREATE INDEX submission_key ON submission (client, key) WHERE key IS NOT NULL;

-- `token` is the BLAKE3 hash of a principal's token. Other processes write here while the organism runs.
CREATE TABLE principal (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, created INTEGER NOT NULL, token BLOB NOT NULL UNIQUE,
    sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

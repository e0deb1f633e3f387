-- The layout of a journal in PostgreSQL, version 1. All names are in the schema `systole`.
--
-- One owner appends to a log, which has a number, `part`. There is one, 0, with all 256 partitions; a row of a table names
-- its log in `log`.

-- The version of the layout, in one row.
CREATE TABLE systole.layout (version integer NOT NULL);

-- What was written, in order: each entry is one append. The state of a journal is its tables with the entries behind
-- `fed.seq` applied. `id` is drawn by the writer, which finds its own entry by it after a lost answer; `sum` is the
-- checksum of `body`. Entries that the tables have are deleted, but for the last one, which the next one must follow.
CREATE TABLE systole.log (
    part smallint NOT NULL, seq bigint NOT NULL, epoch bigint NOT NULL, id uuid NOT NULL, kind smallint NOT NULL,
    sum bigint NOT NULL, body bytea NOT NULL, written timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (part, seq)
);
-- Compressed by its writer.
ALTER TABLE systole.log ALTER COLUMN body SET STORAGE EXTERNAL;

-- The last entry that the tables have, the epoch of the log's owner, and the connection by which it appends.
CREATE TABLE systole.fed (
    part smallint PRIMARY KEY, seq bigint NOT NULL, epoch bigint NOT NULL, backend integer, since timestamptz
);

-- The tables, with the columns that they have in an SQLite file: `docs/journal.md` describes them.
CREATE TABLE systole.meta (
    log smallint NOT NULL, id bigint NOT NULL, key bytea NOT NULL, epoch bigint NOT NULL, running bigint NOT NULL,
    total bigint NOT NULL, trusted bigint NOT NULL, sum bigint NOT NULL, at bigint NOT NULL, PRIMARY KEY (log, id)
);
CREATE TABLE systole.organism (
    log smallint NOT NULL, id bigint NOT NULL, name text NOT NULL, uuid bytea NOT NULL, sum bigint NOT NULL,
    at bigint NOT NULL, PRIMARY KEY (log, id)
);
CREATE TABLE systole.horizon (
    log smallint NOT NULL, id bigint NOT NULL, ended bigint NOT NULL, sum bigint NOT NULL, at bigint NOT NULL,
    PRIMARY KEY (log, id)
);
CREATE TABLE systole.thread (
    log smallint NOT NULL, number bigint NOT NULL, id bytea NOT NULL, parent bigint, root bigint NOT NULL,
    listener text, client text, ordinal bigint NOT NULL, depth bigint NOT NULL, opened_by bytea NOT NULL,
    origin text, deadline bigint, own_deadline bigint NOT NULL, spawned bigint NOT NULL, gone bigint NOT NULL,
    label text, traceparent text, sum bigint NOT NULL, at bigint NOT NULL, ended bigint, PRIMARY KEY (log, number)
);
CREATE TABLE systole.message (
    log smallint NOT NULL, number bigint NOT NULL, place bigint NOT NULL, thread bigint NOT NULL, id bytea NOT NULL,
    sender text NOT NULL, in_reply_to bytea, answers text, state text NOT NULL, due bigint, owes text,
    kind text NOT NULL, body text NOT NULL, attempts bigint NOT NULL, sum bigint NOT NULL, at bigint NOT NULL,
    ended bigint, ending text, PRIMARY KEY (log, number)
);
CREATE TABLE systole.budget (
    log smallint NOT NULL, thread bigint NOT NULL, tokens bigint, cost bigint, calls bigint, threads bigint,
    spent_tokens bigint NOT NULL, spent_cost bigint NOT NULL, spent_calls bigint NOT NULL,
    spent_threads bigint NOT NULL, sum bigint NOT NULL, at bigint NOT NULL, ended bigint, PRIMARY KEY (log, thread)
);
CREATE TABLE systole.fan (
    log smallint NOT NULL, message bigint NOT NULL, call bigint NOT NULL, thread bigint NOT NULL,
    source bytea NOT NULL, total bigint NOT NULL, delivered bigint NOT NULL, counted_off bigint NOT NULL,
    requests text, awaited text, outcome text, decided bigint, result text, sum bigint NOT NULL, at bigint NOT NULL,
    ended bigint, PRIMARY KEY (log, message, call)
);
CREATE TABLE systole.settled (
    log smallint NOT NULL, message bigint NOT NULL, call bigint NOT NULL, place bigint NOT NULL,
    extra bigint NOT NULL, answer_to bigint NOT NULL, sender text, payload text, fault text, sum bigint NOT NULL,
    at bigint NOT NULL, ended bigint, PRIMARY KEY (log, message, call, place)
);
CREATE TABLE systole.note (
    log smallint NOT NULL, message bigint NOT NULL, place bigint NOT NULL, name text NOT NULL, value text NOT NULL,
    sum bigint NOT NULL, at bigint NOT NULL, ended bigint, PRIMARY KEY (log, message, place)
);
CREATE TABLE systole.remembered (
    log smallint NOT NULL, number bigint NOT NULL, thread bigint NOT NULL, sender text NOT NULL,
    payload text NOT NULL, sum bigint NOT NULL, at bigint NOT NULL, ended bigint, PRIMARY KEY (log, number)
);
CREATE TABLE systole.egress (
    log smallint NOT NULL, number bigint NOT NULL, client text NOT NULL, root bytea NOT NULL, sender text NOT NULL,
    in_reply_to text, envelope text NOT NULL, fault text, payload text NOT NULL, sum bigint NOT NULL,
    at bigint NOT NULL, ended bigint, PRIMARY KEY (log, number)
);
CREATE TABLE systole.letter (
    log smallint NOT NULL, number bigint NOT NULL, buried bigint NOT NULL, sender text NOT NULL, target text,
    path text NOT NULL, qname text, payload text, reason text NOT NULL, part bigint NOT NULL, sum bigint NOT NULL,
    at bigint NOT NULL, PRIMARY KEY (log, number)
);
CREATE TABLE systole.requeue (
    log smallint NOT NULL, letter bigint NOT NULL, sum bigint NOT NULL, at bigint NOT NULL,
    PRIMARY KEY (log, letter)
);
CREATE TABLE systole.task (
    log smallint NOT NULL, inbox text COLLATE "C" NOT NULL, id bytea NOT NULL, place bigint NOT NULL,
    state text NOT NULL, body text NOT NULL, sum bigint NOT NULL, at bigint NOT NULL, PRIMARY KEY (log, inbox, id)
);
CREATE TABLE systole.state (
    log smallint NOT NULL, listener text COLLATE "C" NOT NULL, blob bytea NOT NULL, sum bigint NOT NULL,
    at bigint NOT NULL, PRIMARY KEY (log, listener)
);
CREATE TABLE systole.paused (
    log smallint NOT NULL, listener text COLLATE "C" NOT NULL, since bigint NOT NULL, sum bigint NOT NULL,
    at bigint NOT NULL, PRIMARY KEY (log, listener)
);
CREATE TABLE systole.act (
    log smallint NOT NULL, place bigint NOT NULL, operator text NOT NULL, act text NOT NULL, about text NOT NULL,
    error text, opened bytea, sum bigint NOT NULL, at bigint NOT NULL, ended bigint, PRIMARY KEY (log, at, place)
);
CREATE TABLE systole.mail (
    log smallint NOT NULL, seq bigint NOT NULL, mailbox text NOT NULL, id bytea NOT NULL, thread bytea NOT NULL,
    sender text NOT NULL, in_reply_to bytea, payload text NOT NULL, came bigint NOT NULL, sum bigint NOT NULL,
    at bigint NOT NULL, envelope text NOT NULL, PRIMARY KEY (log, seq)
);
CREATE TABLE systole.mail_status (
    log smallint NOT NULL, seq bigint NOT NULL, state text NOT NULL, deliveries bigint NOT NULL, due bigint,
    receipt bytea, spent bigint NOT NULL, error text, answer bytea, sum bigint NOT NULL, at bigint NOT NULL,
    ended bigint, PRIMARY KEY (log, seq)
);
CREATE TABLE systole.mail_gone (
    log smallint NOT NULL, mailbox text COLLATE "C" NOT NULL, pruned bigint NOT NULL, last bigint NOT NULL,
    sum bigint NOT NULL, at bigint NOT NULL, PRIMARY KEY (log, mailbox)
);
CREATE TABLE systole.agent (
    log smallint NOT NULL, name text COLLATE "C" NOT NULL, paused bigint, registered bigint, mode text, url text,
    declared text, sum bigint NOT NULL, at bigint NOT NULL, PRIMARY KEY (log, name)
);
CREATE TABLE systole.addressee (
    log smallint NOT NULL, mailbox text COLLATE "C" NOT NULL, person text, sum bigint NOT NULL, at bigint NOT NULL,
    PRIMARY KEY (log, mailbox)
);
CREATE TABLE systole.submission (
    log smallint NOT NULL, id bytea NOT NULL, client text NOT NULL, root bytea NOT NULL, key text, digest bytea,
    sum bigint NOT NULL, at bigint NOT NULL, ended bigint, PRIMARY KEY (log, id)
);
CREATE TABLE systole.principal (
    log smallint NOT NULL, name text COLLATE "C" NOT NULL, kind text NOT NULL, created bigint NOT NULL,
    token bytea NOT NULL, sum bigint NOT NULL, at bigint NOT NULL, PRIMARY KEY (log, name), UNIQUE (log, token)
);

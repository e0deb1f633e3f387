-- Version 1. Ids are 16 bytes (`hex(id)` shows them), times are nanoseconds since 1970 in UTC, headers are JSON.
-- A row has ended when it has `settled`: then `outcome` says how (`answered`, `queued` or a cause), and `body` is gone.
-- `turn` numbers ended rows in the order in which they ended; `told` is 1 once a caller has the outcome.
CREATE TABLE delivery (
    place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, target TEXT NOT NULL, url TEXT NOT NULL,
    headers TEXT NOT NULL, signed INTEGER NOT NULL, digest BLOB NOT NULL, body BLOB, created INTEGER NOT NULL,
    attempts INTEGER NOT NULL, spent INTEGER NOT NULL, next INTEGER, error TEXT,
    settled INTEGER, outcome TEXT, status INTEGER, content_type TEXT, answer BLOB, allowed INTEGER, turn INTEGER,
    told INTEGER NOT NULL
) STRICT;
CREATE INDEX delivery_open ON delivery (target, place) WHERE settled IS NULL;
CREATE INDEX delivery_settled ON delivery (settled) WHERE settled IS NOT NULL;
CREATE INDEX delivery_untold ON delivery (turn) WHERE settled IS NOT NULL AND told = 0;

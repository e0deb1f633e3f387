-- Version 9: steps that are not in the other tables yet, those of one transaction in a row. `total` is the sum of the
-- sums of all open rows of the other tables.
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, total INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL, steps BLOB NOT NULL
) STRICT;

-- Version 8: sums are XXH3 instead of BLAKE3 (`renewal` rewrites those of earlier versions), numbers count to 2^39 in an
-- epoch instead of to 2^48, and each record has a partition.
-- That of a conversation is the last byte of the id of its root (0 for the conversations of `<boot>`), for good. Every
-- record of a conversation leads to its root by keys that it has anyway and that its sum covers: `thread.root`, `thread`
-- of messages, fan-outs, budgets and contexts, `message` of notes and answers, `root` of egress and submissions. So it
-- is no column there: a copy in each row would have to be kept equal, and reading a partition from its roots down needs
-- no index on one. Only a dead letter leads to no root.
ALTER TABLE letter ADD COLUMN part INTEGER NOT NULL DEFAULT 0;

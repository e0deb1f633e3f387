-- The layout of a journal in PostgreSQL, version 2: several nodes of one organism, one of which runs it.

-- The lease on a log: the node that may run it, until a time of the server's clock. `process` is the random id of the node's
-- process, `term` counts the takings. One statement takes it, and requires that it has ended.
CREATE TABLE systole.lease (
    part smallint PRIMARY KEY, node text NOT NULL, url text NOT NULL, process uuid NOT NULL, term bigint NOT NULL,
    since timestamptz NOT NULL, until timestamptz NOT NULL, handed_over boolean NOT NULL
);

-- The nodes, by their names, and when each last asked.
CREATE TABLE systole.node (
    name text COLLATE "C" PRIMARY KEY, url text NOT NULL, process uuid NOT NULL, seen timestamptz NOT NULL
);

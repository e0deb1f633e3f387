-- Version 7: the budgets of threads, and what was spent of them: tokens, millionths of the currency, calls, threads.
CREATE TABLE budget (
    thread INTEGER PRIMARY KEY, tokens INTEGER, cost INTEGER, calls INTEGER, threads INTEGER,
    spent_tokens INTEGER NOT NULL, spent_cost INTEGER NOT NULL, spent_calls INTEGER NOT NULL,
    spent_threads INTEGER NOT NULL, sum INTEGER NOT NULL, at INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX budget_ended ON budget (ended);

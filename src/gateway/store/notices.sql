-- Version 3. What rode on responses: a message that a session has, under the token that confirms it. Such a message is
-- leased without a time (`due` is as late as can be), and its receipt is the token. `confirmed`: since when, if it is.
CREATE TABLE notice (
    token BLOB NOT NULL, number INTEGER NOT NULL, session BLOB NOT NULL, item BLOB NOT NULL, confirmed INTEGER,
    PRIMARY KEY (token, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX notice_session ON notice (session, confirmed);

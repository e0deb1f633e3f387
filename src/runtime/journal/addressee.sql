-- Version 6: the sum of a row covers when it came and when it ended: XOR `at`, XOR `ended`, where a ^ b is
-- (a | b) - (a & b); and the addressee of a listener's answers that name none. `renew` writes the rows of earlier
-- versions there, and corrects the total of `meta`.
CREATE TABLE addressee (
    mailbox TEXT PRIMARY KEY, person TEXT, sum INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

UPDATE meta SET sum = (sum | at) - (sum & at);
UPDATE thread SET sum = (sum | at) - (sum & at);
UPDATE thread SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE message SET sum = (sum | at) - (sum & at);
UPDATE message SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE fan SET sum = (sum | at) - (sum & at);
UPDATE fan SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE settled SET sum = (sum | at) - (sum & at);
UPDATE settled SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE note SET sum = (sum | at) - (sum & at);
UPDATE note SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE remembered SET sum = (sum | at) - (sum & at);
UPDATE remembered SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE egress SET sum = (sum | at) - (sum & at);
UPDATE egress SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE letter SET sum = (sum | at) - (sum & at);
UPDATE requeue SET sum = (sum | at) - (sum & at);
UPDATE task SET sum = (sum | at) - (sum & at);
UPDATE state SET sum = (sum | at) - (sum & at);
UPDATE horizon SET sum = (sum | at) - (sum & at);
UPDATE mail SET sum = (sum | at) - (sum & at);
UPDATE mail_status SET sum = (sum | at) - (sum & at);
UPDATE mail_status SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE mail_gone SET sum = (sum | at) - (sum & at);
UPDATE agent SET sum = (sum | at) - (sum & at);
UPDATE submission SET sum = (sum | at) - (sum & at);
UPDATE submission SET sum = (sum | ended) - (sum & ended) WHERE ended IS NOT NULL;
UPDATE principal SET sum = (sum | at) - (sum & at);
UPDATE taken_over SET sum = (sum | at) - (sum & at);

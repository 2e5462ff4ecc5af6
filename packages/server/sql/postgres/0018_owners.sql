-- Whether a node has sessions in its memory, and a copy of each in Redis: one of a version before has them in Redis alone,
-- and nobody waits for it to write them there again.
ALTER TABLE nodes ADD COLUMN owns_sessions boolean NOT NULL DEFAULT false;

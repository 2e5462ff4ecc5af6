-- What the clock of the database has jumped in all, in ms, as the nodes have agreed [END3].
ALTER TABLE deployment ADD COLUMN jumped_ms bigint NOT NULL DEFAULT 0;

-- When nobody could come back: no node served, or none had both stores. Lost clocks stand still then. Whoever is there first
-- afterwards writes it down, by the clock of the database.
CREATE TABLE outages (
  began_at timestamptz PRIMARY KEY,
  ended_at timestamptz NOT NULL
);

-- When a node was last seen with both stores. NULL: a node of an older version, which does not say.
ALTER TABLE nodes ADD COLUMN ready_at timestamptz;

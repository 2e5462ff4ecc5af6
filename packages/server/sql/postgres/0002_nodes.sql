-- The runs of nodes that serve on this database. A node that lives counts on; one whose count stands still for a while,
-- as the others see it, is dead. No clock is compared.
CREATE TABLE nodes (
  name text COLLATE "C" PRIMARY KEY,
  beats bigint NOT NULL,
  -- It ended in order: nobody needs to wait.
  has_left boolean NOT NULL DEFAULT false,
  seen_at timestamptz NOT NULL
);

-- What commits wrote for endpoints, on its way into webhook_deliveries: one row of each step and no index, for calls wait
-- for it. They are spread when a claim finds less than it wants, and before deliveries are listed, erased or removed.
CREATE TABLE webhook_steps (
  seq INTEGER PRIMARY KEY,
  -- A JSON array of deliveries, each the array of its values in the order of their columns.
  deliveries TEXT NOT NULL
) STRICT;

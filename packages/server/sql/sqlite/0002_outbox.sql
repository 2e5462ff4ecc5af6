-- Steps of which not everybody has been told yet; written in the commit of the step, and removed afterwards. `seq` is of the
-- step's event. The serving process alone reads and writes them: who is at which one is in its memory.
CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY
) STRICT;

-- A commit locks the calls that it moves on as any UPDATE does that leaves their keys alone: whoever adds to their timelines
-- holds the keys only (FOR KEY SHARE), and neither waits for the other. Who blanks or removes calls takes FOR UPDATE, and waits
-- for both.
DO $$
BEGIN
  EXECUTE replace(pg_get_functiondef('commit_steps'::regproc), 'FOR UPDATE OF c', 'FOR NO KEY UPDATE OF c');
END
$$;

-- Who decides on a product's invites before they ring, and what happens where nobody answers: 'allow' or 'refuse' [HOOK5].
ALTER TABLE product_settings ADD COLUMN invite_url text;
ALTER TABLE product_settings ADD COLUMN invite_secret text;
ALTER TABLE product_settings ADD COLUMN invite_failure text NOT NULL DEFAULT 'refuse';

-- What few calls have, as JSON; null for all others.
ALTER TABLE calls ADD COLUMN extra text;
DO $$
BEGIN
  EXECUTE replace(replace(replace(replace(pg_get_functiondef('commit_steps'::regproc),
    'connected_at, ended_at, end_reason', 'connected_at, ended_at, end_reason, extra'),
    'n.end_reason', 'n.end_reason, n.extra'),
    'r.end_reason', 'r.end_reason, r.extra'),
    'end_reason text', 'end_reason text, extra text');
END
$$;

-- Who decides on a product's invites before they ring, and what happens where nobody answers: 'allow' or 'refuse' [HOOK5].
ALTER TABLE product_settings ADD COLUMN invite_url TEXT;
ALTER TABLE product_settings ADD COLUMN invite_secret TEXT;
ALTER TABLE product_settings ADD COLUMN invite_failure TEXT NOT NULL DEFAULT 'refuse';
-- What few calls have, as JSON; null for all others.
ALTER TABLE calls ADD COLUMN extra TEXT;

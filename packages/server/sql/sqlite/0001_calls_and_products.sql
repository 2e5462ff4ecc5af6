-- Calls, what happened to them, product keys and product settings.
-- Instants are milliseconds since the epoch. Calls are written by the serving process alone.

CREATE TABLE calls (
  id INTEGER PRIMARY KEY,
  product TEXT NOT NULL,
  call_uuid TEXT NOT NULL,
  -- What never changes.
  caller_role TEXT NOT NULL,
  caller_user_id TEXT NOT NULL,
  caller_name TEXT,
  callee_role TEXT NOT NULL,
  callee_user_id TEXT NOT NULL,
  context_type TEXT NOT NULL,
  context_id TEXT NOT NULL,
  call_type TEXT NOT NULL,
  metadata TEXT,
  started_at INTEGER NOT NULL,
  ring_timeout_ms INTEGER NOT NULL,
  -- What a transition may change. Each version is written once, over the one before.
  version INTEGER NOT NULL,
  status TEXT NOT NULL,
  callee_name TEXT,
  ring_expires_at INTEGER NOT NULL,
  caller_place TEXT NOT NULL,
  callee_place TEXT,
  silenced TEXT,
  accepted_at INTEGER,
  connected_at INTEGER,
  ended_at INTEGER,
  end_reason TEXT
) STRICT;

-- call_uuid is unique per product [UUID1].
CREATE UNIQUE INDEX calls_by_uuid ON calls (call_uuid, product);
-- History, in both directions [HIST1].
CREATE INDEX calls_by_caller ON calls (caller_user_id, caller_role, product, started_at, call_uuid);
CREATE INDEX calls_by_callee ON calls (callee_user_id, callee_role, product, started_at, call_uuid);
-- NULL: the live calls, read at start. Then by the end: the calls whose final notices may be missing.
CREATE INDEX calls_by_end ON calls (ended_at);

-- One row for every version of every call, in the order of the commits.
CREATE TABLE call_events (
  seq INTEGER PRIMARY KEY,
  call_id INTEGER NOT NULL REFERENCES calls (id),
  version INTEGER NOT NULL,
  type TEXT NOT NULL,
  at INTEGER NOT NULL,
  by_user_id TEXT,
  by_role TEXT,
  by_session_id TEXT,
  -- The pushes that the transition causes, a JSON array; NULL where it causes none.
  notices TEXT
) STRICT;

CREATE UNIQUE INDEX call_events_by_call ON call_events (call_id, version);

CREATE TABLE product_keys (
  key_id TEXT PRIMARY KEY,
  products TEXT NOT NULL,
  disabled INTEGER NOT NULL,
  origin TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- SHA-256 of the secrets of a key: the current one (valid_until NULL) and rotated ones until they run out [TOK4].
CREATE TABLE product_key_secrets (
  key_id TEXT NOT NULL REFERENCES product_keys (key_id),
  secret_hash BLOB NOT NULL,
  valid_until INTEGER,
  PRIMARY KEY (key_id, secret_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE product_settings (
  product TEXT PRIMARY KEY,
  busy TEXT NOT NULL,
  reveal_busy INTEGER NOT NULL,
  ring_timeout_ms INTEGER
) STRICT, WITHOUT ROWID;

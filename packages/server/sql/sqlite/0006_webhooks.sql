-- Where the webhooks of a product go.
CREATE TABLE webhook_endpoints (
  id TEXT PRIMARY KEY,
  product TEXT NOT NULL,
  url TEXT NOT NULL,
  -- A JSON array of types; null: all types of calls.
  events TEXT,
  description TEXT,
  enabled INTEGER NOT NULL,
  secret TEXT NOT NULL,
  old_secret TEXT,
  old_secret_until INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

-- Events on their way to endpoints, written in the commit of the step; who is at which one is in the memory of the process
-- that serves. `body` is what is sent, the same every time.
CREATE TABLE webhook_deliveries (
  id TEXT PRIMARY KEY,
  endpoint_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  version INTEGER NOT NULL,
  type TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending',
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER DEFAULT 0,
  ended_at INTEGER,
  response_status INTEGER,
  response TEXT
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_order ON webhook_deliveries (endpoint_id, subject, version) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_over ON webhook_deliveries (status, ended_at) WHERE status <> 'pending';

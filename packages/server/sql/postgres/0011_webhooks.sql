-- Where the webhooks of a product go.
CREATE TABLE webhook_endpoints (
  id text PRIMARY KEY,
  product text NOT NULL,
  url text NOT NULL,
  -- A JSON array of types; null: all types of calls.
  events text,
  description text,
  enabled boolean NOT NULL,
  secret text NOT NULL,
  old_secret text,
  old_secret_until bigint,
  created_at bigint NOT NULL
);

-- Events on their way to endpoints, written in the commit of the step. `body` is what is sent, the same every time. `due_at`:
-- when the next attempt may begin, on the clock of the database; a claim moves it.
CREATE TABLE webhook_deliveries (
  id text COLLATE "C" PRIMARY KEY,
  endpoint_id text NOT NULL,
  subject text NOT NULL,
  version integer NOT NULL,
  type text NOT NULL,
  body text NOT NULL,
  created_at bigint NOT NULL,
  status text NOT NULL DEFAULT 'pending',
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz DEFAULT clock_timestamp(),
  ended_at bigint,
  response_status integer,
  response text
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_order ON webhook_deliveries (endpoint_id, subject, version) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_over ON webhook_deliveries (status, ended_at) WHERE status <> 'pending';

-- Writes a batch of transitions as `commit_steps` does, and what endpoints are to hear of those that are written.
CREATE FUNCTION commit_hooked_steps(
  creates json, moves json, events json, seen json, hooks json, OUT refused integer[], OUT noted bigint[]
)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT s.refused, s.noted INTO refused, noted FROM commit_steps(creates, moves, events, seen) AS s;
  INSERT INTO webhook_deliveries (id, endpoint_id, subject, version, type, body, created_at)
  SELECT h.id, h.endpoint_id, h.subject, h.version, h.type, h.body, h.created_at
  FROM json_to_recordset(hooks) AS h (
    t integer, id text, endpoint_id text, subject text, version integer, type text, body text, created_at bigint
  )
  WHERE h.t <> ALL (refused);
END
$$;

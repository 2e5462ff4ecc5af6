-- Who was told as online, and which runs of nodes have a socket of them: of products with an endpoint that hears it [HOOK2].
-- People come and go quickly: the space of their rows is needed again soon.
CREATE TABLE online (
  product text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  node text COLLATE "C" NOT NULL,
  PRIMARY KEY (product, role, user_id, node)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX online_by_node ON online (node);

-- A node says whose sockets it has from now on (`comes`), and whose it has not any more. `hooks` are for endpoints: those of
-- somebody (n) are written where that made the first row of him, or removed the last one. Of one participant an endpoint hears in
-- order. Doing it again changes nothing, and tells nothing.
--
-- Participants are locked one after another, by hash: each statement in here sees what was committed before it began, which is
-- true of READ COMMITTED alone.
CREATE FUNCTION tell_online(at_node text, people json, hooks json) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  participant bigint;
  before integer[];
  after integer[];
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'tell_online needs READ COMMITTED';
  END IF;
  FOREACH participant IN ARRAY ARRAY(
    SELECT DISTINCT hashtextextended(json_build_array(p.product, p.role, p.user_id)::text, 1)
    FROM json_to_recordset(people) AS p (product text, role text, user_id text) ORDER BY 1
  ) LOOP
    PERFORM pg_advisory_xact_lock(participant);
  END LOOP;

  before := ARRAY(
    SELECT p.n FROM json_to_recordset(people) AS p (n integer, product text, role text, user_id text)
    WHERE EXISTS (SELECT FROM online o WHERE o.product = p.product AND o.role = p.role AND o.user_id = p.user_id)
  );
  DELETE FROM online o
  USING json_to_recordset(people) AS p (product text, role text, user_id text, comes boolean)
  WHERE NOT p.comes AND o.product = p.product AND o.role = p.role AND o.user_id = p.user_id AND o.node = at_node;
  INSERT INTO online (product, role, user_id, node)
  SELECT p.product, p.role, p.user_id, at_node
  FROM json_to_recordset(people) AS p (product text, role text, user_id text, comes boolean)
  WHERE p.comes ON CONFLICT DO NOTHING;
  after := ARRAY(
    SELECT p.n FROM json_to_recordset(people) AS p (n integer, product text, role text, user_id text)
    WHERE EXISTS (SELECT FROM online o WHERE o.product = p.product AND o.role = p.role AND o.user_id = p.user_id)
  );

  INSERT INTO webhook_deliveries (id, endpoint_id, subject, version, type, body, created_at)
  SELECT h.id, h.endpoint_id, h.subject, 1 + coalesce((
    SELECT max(d.version) FROM webhook_deliveries d
    WHERE d.endpoint_id = h.endpoint_id AND d.subject = h.subject AND d.status = 'pending'
  ), 0), h.type, h.body, h.created_at
  FROM json_to_recordset(hooks) AS h (
    n integer, id text, endpoint_id text, subject text, type text, body text, created_at bigint
  )
  WHERE (h.n = ANY (before)) <> (h.n = ANY (after));
END
$$;

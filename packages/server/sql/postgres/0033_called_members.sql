-- Who was rung in calls to groups, to find the calls by them [GROUP1]. Triggers keep it, so no commit of other calls costs more.
CREATE TABLE call_members (
  product text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  started_at bigint NOT NULL,
  call_uuid text COLLATE "C" NOT NULL,
  PRIMARY KEY (product, role, user_id, started_at, call_uuid)
);

CREATE FUNCTION note_called_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO call_members (product, role, user_id, started_at, call_uuid)
  SELECT NEW.product, NEW.callee_role, user_id, NEW.started_at, NEW.call_uuid
  FROM json_array_elements_text(NEW.extra::json -> 'group' -> 'members') AS member (user_id)
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;
CREATE TRIGGER call_to_group AFTER INSERT ON calls FOR EACH ROW
WHEN (NEW.extra LIKE '%"group":%') EXECUTE FUNCTION note_called_members();

-- Whoever accepted is named by the call itself. The others of an answered call are not kept.
CREATE FUNCTION forget_called_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM call_members AS m
  USING json_array_elements_text(OLD.extra::json -> 'group' -> 'members') AS member (user_id)
  WHERE m.product = OLD.product AND m.role = OLD.callee_role AND m.user_id = member.user_id
    AND m.started_at = OLD.started_at AND m.call_uuid = OLD.call_uuid;
  RETURN NULL;
END
$$;
CREATE TRIGGER call_to_group_gone AFTER DELETE ON calls FOR EACH ROW
WHEN (OLD.extra LIKE '%"group":%') EXECUTE FUNCTION forget_called_members();
CREATE TRIGGER call_to_group_ended AFTER UPDATE ON calls FOR EACH ROW
WHEN (OLD.extra LIKE '%"group":%' AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.accepted_at IS NOT NULL)
EXECUTE FUNCTION forget_called_members();

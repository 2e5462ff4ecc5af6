-- Whether a call to a group rang at a member until it was answered or over: not where the member declined or has left the
-- group. If nobody answered, such calls are in the history of the member [GROUP1].
ALTER TABLE call_members ADD COLUMN rang boolean NOT NULL DEFAULT true;

-- A call that is copied from another store may have been declined before it comes.
CREATE OR REPLACE FUNCTION note_called_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO call_members (product, role, user_id, started_at, call_uuid, rang)
  SELECT NEW.product, NEW.callee_role, user_id, NEW.started_at, NEW.call_uuid, user_id NOT IN (
    SELECT declined FROM json_array_elements_text(NEW.extra::json -> 'group' -> 'declined') AS declined
  )
  FROM json_array_elements_text(NEW.extra::json -> 'group' -> 'members') AS member (user_id)
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;

CREATE FUNCTION note_quiet_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE call_members AS m SET rang = false
  FROM (
    SELECT user_id FROM json_array_elements_text(NEW.extra::json -> 'group' -> 'declined') AS declined (user_id)
    UNION (
      SELECT user_id FROM json_array_elements_text(OLD.extra::json -> 'group' -> 'members') AS before (user_id)
      EXCEPT SELECT user_id FROM json_array_elements_text(NEW.extra::json -> 'group' -> 'members') AS after (user_id)
    )
  ) AS quiet
  WHERE m.product = NEW.product AND m.role = NEW.callee_role AND m.user_id = quiet.user_id
    AND m.started_at = NEW.started_at AND m.call_uuid = NEW.call_uuid AND m.rang;
  RETURN NULL;
END
$$;
CREATE TRIGGER call_to_group_changed AFTER UPDATE ON calls FOR EACH ROW
WHEN (NEW.extra LIKE '%"group":%' AND NEW.extra IS DISTINCT FROM OLD.extra AND NEW.accepted_at IS NULL)
EXECUTE FUNCTION note_quiet_members();

-- Of an answered call those are kept who declined or left: its events name them.
CREATE FUNCTION forget_rung_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM call_members AS m
  USING json_array_elements_text(OLD.extra::json -> 'group' -> 'members') AS member (user_id)
  WHERE m.product = OLD.product AND m.role = OLD.callee_role AND m.user_id = member.user_id
    AND m.started_at = OLD.started_at AND m.call_uuid = OLD.call_uuid AND m.rang;
  RETURN NULL;
END
$$;
DROP TRIGGER call_to_group_ended ON calls;
CREATE TRIGGER call_to_group_ended AFTER UPDATE ON calls FOR EACH ROW
WHEN (OLD.extra LIKE '%"group":%' AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.accepted_at IS NOT NULL)
EXECUTE FUNCTION forget_rung_members();
CREATE OR REPLACE FUNCTION forget_called_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM call_members AS m
  USING (
    SELECT user_id FROM json_array_elements_text(OLD.extra::json -> 'group' -> 'members') AS members (user_id)
    UNION SELECT user_id FROM json_array_elements_text(OLD.extra::json -> 'group' -> 'declined') AS declined (user_id)
    UNION SELECT user_id FROM json_array_elements_text(OLD.extra::json -> 'group' -> 'left') AS gone (user_id)
  ) AS member
  WHERE m.product = OLD.product AND m.role = OLD.callee_role AND m.user_id = member.user_id
    AND m.started_at = OLD.started_at AND m.call_uuid = OLD.call_uuid;
  RETURN NULL;
END
$$;

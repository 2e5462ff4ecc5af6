-- Whether a call to a group rang at a member until it was answered or over: not where the member declined or has left the
-- group. If nobody answered, such calls are in the history of the member [GROUP1].
ALTER TABLE call_members ADD COLUMN rang boolean NOT NULL DEFAULT true;
-- The history of a member reads these, and passes no others over: most calls to a group are answered.
CREATE INDEX members_rung ON call_members (product, role, user_id, started_at, call_uuid) WHERE rang;

-- A call that is copied from another store may have been declined before it comes, and be over. Its events name those who
-- declined or left, so an erasure has to find it by them [SRV2].
CREATE OR REPLACE FUNCTION note_called_members() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  called json := NEW.extra::json -> 'group';
BEGIN
  INSERT INTO call_members (product, role, user_id, started_at, call_uuid, rang)
  SELECT NEW.product, NEW.callee_role, user_id, NEW.started_at, NEW.call_uuid, bool_and(named.rang)
  FROM (
    SELECT user_id, NEW.ended_at IS NULL OR NEW.accepted_at IS NULL AS rang
    FROM json_array_elements_text(called -> 'members') AS member (user_id)
    UNION ALL SELECT user_id, false FROM json_array_elements_text(called -> 'declined') AS declined (user_id)
    UNION ALL SELECT user_id, false FROM json_array_elements_text(called -> 'left') AS gone (user_id)
  ) AS named
  GROUP BY user_id
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;

-- One trigger for all that happens to a call to a group. Most calls have no `extra`: they are not looked at.
CREATE FUNCTION note_changed_members() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  old_group json := OLD.extra::json -> 'group';
  new_group json := NEW.extra::json -> 'group';
  ends boolean := OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL;
BEGIN
  IF old_group IS NULL THEN
    RETURN NULL;
  END IF;
  -- Members who have declined or left since, and no others: a long list would cost as much at each decline.
  IF NEW.accepted_at IS NULL AND NEW.extra IS DISTINCT FROM OLD.extra THEN
    UPDATE call_members AS m SET rang = false
    FROM (
      (
        SELECT user_id FROM json_array_elements_text(new_group -> 'declined') AS declined (user_id)
        EXCEPT SELECT user_id FROM json_array_elements_text(old_group -> 'declined') AS before (user_id)
      ) UNION (
        SELECT user_id FROM json_array_elements_text(old_group -> 'members') AS member (user_id)
        EXCEPT SELECT user_id FROM json_array_elements_text(new_group -> 'members') AS after (user_id)
      )
    ) AS quiet
    WHERE m.product = NEW.product AND m.role = NEW.callee_role AND m.user_id = quiet.user_id
      AND m.started_at = NEW.started_at AND m.call_uuid = NEW.call_uuid AND m.rang;
  END IF;
  -- Those are kept whom the call itself names from now on, and those who declined or left: its events name them. Of a call that
  -- was answered none of them has it in the history.
  IF ends AND NEW.accepted_at IS NOT NULL THEN
    UPDATE call_members AS m SET rang = false
    FROM json_array_elements_text(new_group -> 'members') AS member (user_id)
    WHERE m.product = NEW.product AND m.role = NEW.callee_role AND m.user_id = member.user_id
      AND m.started_at = NEW.started_at AND m.call_uuid = NEW.call_uuid AND m.rang;
    DELETE FROM call_members AS m
    USING json_array_elements_text(old_group -> 'members') AS member (user_id)
    WHERE m.product = OLD.product AND m.role = OLD.callee_role AND m.user_id = member.user_id
      AND m.started_at = OLD.started_at AND m.call_uuid = OLD.call_uuid AND m.rang;
  ELSIF ends AND old_group -> 'turns' IS NOT NULL THEN
    DELETE FROM call_members AS m
    USING (
      SELECT user_id FROM json_array_elements_text(old_group -> 'members') AS member (user_id)
      EXCEPT SELECT user_id FROM json_array_elements_text(new_group -> 'members') AS rung (user_id)
      EXCEPT SELECT user_id FROM json_array_elements_text(new_group -> 'declined') AS declined (user_id)
      EXCEPT SELECT user_id FROM json_array_elements_text(new_group -> 'left') AS gone (user_id)
    ) AS missed
    WHERE m.product = OLD.product AND m.role = OLD.callee_role AND m.user_id = missed.user_id
      AND m.started_at = OLD.started_at AND m.call_uuid = OLD.call_uuid;
  END IF;
  RETURN NULL;
END
$$;
DROP TRIGGER call_to_group_ended ON calls;
DROP TRIGGER call_in_turn_ended ON calls;
DROP FUNCTION forget_members_not_rung;
CREATE TRIGGER call_to_group_changed AFTER UPDATE ON calls FOR EACH ROW
WHEN (OLD.extra IS NOT NULL) EXECUTE FUNCTION note_changed_members();

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

-- A call that rings at one member after another may end before all had their turn: the others were not rung [GROUP1].
CREATE FUNCTION forget_members_not_rung() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM call_members AS m
  USING json_array_elements_text(OLD.extra::json -> 'group' -> 'members') AS member (user_id)
  WHERE m.product = OLD.product AND m.role = OLD.callee_role AND m.user_id = member.user_id
    AND m.started_at = OLD.started_at AND m.call_uuid = OLD.call_uuid
    AND m.user_id NOT IN (SELECT json_array_elements_text(NEW.extra::json -> 'group' -> 'members'));
  RETURN NULL;
END
$$;
CREATE TRIGGER call_in_turn_ended AFTER UPDATE ON calls FOR EACH ROW
WHEN (OLD.extra LIKE '%"turns":%' AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.accepted_at IS NULL)
EXECUTE FUNCTION forget_members_not_rung();

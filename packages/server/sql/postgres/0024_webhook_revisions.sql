-- Which endpoints changed: nodes ask for those that did since they looked last, and not for all of them [HOOK1]. The row of
-- `webhook_revision` is locked until a change is committed, so numbers become visible in their order.
CREATE TABLE webhook_revision (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  changed bigint NOT NULL DEFAULT 0,
  removed bigint NOT NULL DEFAULT 0
);
INSERT INTO webhook_revision DEFAULT VALUES;
ALTER TABLE webhook_endpoints ADD COLUMN revision bigint NOT NULL DEFAULT 0;
CREATE INDEX webhook_endpoints_by_revision ON webhook_endpoints (revision);

-- With the rights of its owner: nodes of the version before know nothing of the table.
CREATE FUNCTION note_webhook_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    UPDATE webhook_revision SET removed = removed + 1;
    RETURN OLD;
  END IF;
  UPDATE webhook_revision SET changed = changed + 1 RETURNING changed INTO NEW.revision;
  RETURN NEW;
END
$$;
CREATE TRIGGER webhook_endpoints_changed BEFORE INSERT OR UPDATE OR DELETE ON webhook_endpoints
FOR EACH ROW EXECUTE FUNCTION note_webhook_change();

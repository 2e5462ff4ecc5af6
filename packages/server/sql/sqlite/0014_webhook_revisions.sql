-- Which endpoints changed: the service asks for those that did since it looked last, and not for all of them [HOOK1].
CREATE TABLE webhook_revision (changed INTEGER NOT NULL, removed INTEGER NOT NULL);
INSERT INTO webhook_revision VALUES (0, 0);
ALTER TABLE webhook_endpoints ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX webhook_endpoints_by_revision ON webhook_endpoints (revision);

CREATE TRIGGER webhook_endpoints_added AFTER INSERT ON webhook_endpoints BEGIN
  UPDATE webhook_revision SET changed = changed + 1;
  UPDATE webhook_endpoints SET revision = (SELECT changed FROM webhook_revision) WHERE id = NEW.id;
END;
CREATE TRIGGER webhook_endpoints_changed
AFTER UPDATE OF url, events, description, enabled, secret, old_secret, old_secret_until ON webhook_endpoints BEGIN
  UPDATE webhook_revision SET changed = changed + 1;
  UPDATE webhook_endpoints SET revision = (SELECT changed FROM webhook_revision) WHERE id = NEW.id;
END;
CREATE TRIGGER webhook_endpoints_removed AFTER DELETE ON webhook_endpoints BEGIN
  UPDATE webhook_revision SET removed = removed + 1;
END;

-- The endpoints of a product, in the order of its list [HOOK1].
CREATE INDEX webhook_endpoints_of_product ON webhook_endpoints (product, created_at, id);
-- The refused invites of a participant, in the order of their pages [TRACE1].
CREATE INDEX call_timeline_refused_of ON call_timeline (user_id, role, product, at, id) WHERE role <> '';
DROP INDEX call_timeline_asker;
-- What every process keeps in memory of all products and keys, page by page.
CREATE INDEX product_settings_relay ON product_settings (product) WHERE media = 'relay';
CREATE INDEX product_settings_presence ON product_settings (product) WHERE presence = 'peers';
CREATE INDEX product_keys_disabled ON product_keys (key_id) WHERE disabled <> 0;
-- Tokens that were taken back, page by page.
CREATE INDEX revocations_in_order ON revocations (changed_at, participant);
DROP INDEX revocations_by_change;
-- Which endpoints changed, page by page: many may have the same revision.
CREATE INDEX webhook_endpoints_in_order ON webhook_endpoints (revision, id);
DROP INDEX webhook_endpoints_by_revision;

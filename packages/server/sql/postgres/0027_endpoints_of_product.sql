-- The endpoints of a product, in the order of its list [HOOK1].
CREATE INDEX webhook_endpoints_of_product ON webhook_endpoints (product, created_at, id);

-- Until when a delivery is left to the node that claimed it; when it is due is said by `due_at` alone.
ALTER TABLE webhook_deliveries ADD COLUMN claimed_until timestamptz;

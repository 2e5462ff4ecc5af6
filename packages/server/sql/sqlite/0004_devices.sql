-- Devices that can be woken [PUSH1]. `address` is JSON: where a push service finds the device.
CREATE TABLE devices (
  product TEXT NOT NULL,
  role TEXT NOT NULL,
  user_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  address TEXT NOT NULL,
  -- SHA-256 of what is the device's own in it: an address is of one user, the one that registered it last.
  address_hash TEXT NOT NULL,
  registered_at INTEGER NOT NULL,
  PRIMARY KEY (product, role, user_id, device_id)
) STRICT;

CREATE INDEX devices_by_address ON devices (product, address_hash);
CREATE INDEX devices_by_age ON devices (registered_at);

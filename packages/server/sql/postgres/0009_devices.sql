-- Devices that can be woken [PUSH1]. `address` is JSON: where a push service finds the device.
CREATE TABLE devices (
  product text NOT NULL,
  role text NOT NULL,
  user_id text NOT NULL,
  device_id text NOT NULL,
  address text NOT NULL,
  -- SHA-256 of what is the device's own in it: an address is of one user, the one that registered it last.
  address_hash text NOT NULL,
  registered_at bigint NOT NULL,
  PRIMARY KEY (product, role, user_id, device_id)
);

CREATE INDEX devices_by_address ON devices (product, address_hash);
CREATE INDEX devices_by_age ON devices (registered_at);

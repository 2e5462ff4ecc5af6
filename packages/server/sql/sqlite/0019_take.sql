-- Whether devices of a participant may take answered calls from each other [TAKE1].
ALTER TABLE product_settings ADD COLUMN take INTEGER NOT NULL DEFAULT 1;

-- Whether media of a product goes through a TURN server alone: 'all' or 'relay' [PRIV1].
ALTER TABLE product_settings ADD COLUMN media text NOT NULL DEFAULT 'all';

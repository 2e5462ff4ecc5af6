-- Whether participants of a product see if their peers are there: 'off' or 'peers' [PRES1].
ALTER TABLE product_settings ADD COLUMN presence text NOT NULL DEFAULT 'off';

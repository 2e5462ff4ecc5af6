-- Names the deployment that this database belongs to. Redis has a copy, so that no two deployments share one [REDIS1].
CREATE TABLE deployment (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  id text NOT NULL DEFAULT gen_random_uuid()::text
);

INSERT INTO deployment DEFAULT VALUES;

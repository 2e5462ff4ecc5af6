-- What operators, backends and commands changed [ADM3]. The id begins with the time. No column is NULL: nothing is ''.
CREATE TABLE audit (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  actor_kind text NOT NULL,
  actor text NOT NULL,
  action text NOT NULL,
  product text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  subject text NOT NULL,
  detail text NOT NULL
);

CREATE INDEX audit_of_product ON audit (product, id);
CREATE INDEX audit_of_participant ON audit (product, role, user_id, id) WHERE user_id <> '';

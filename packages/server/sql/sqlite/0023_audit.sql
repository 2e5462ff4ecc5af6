-- What operators, backends and commands changed [ADM3]. The id begins with the time. No column is NULL: nothing is ''.
CREATE TABLE audit (
  id TEXT NOT NULL PRIMARY KEY,
  actor_kind TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  product TEXT NOT NULL,
  role TEXT NOT NULL,
  user_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_of_product ON audit (product, id);
CREATE INDEX audit_of_participant ON audit (product, role, user_id, id) WHERE user_id <> '';

-- Who was told as online, and which runs of nodes have a socket of them: of products with an endpoint that hears it [HOOK2].
CREATE TABLE online (
  product TEXT NOT NULL,
  role TEXT NOT NULL,
  user_id TEXT NOT NULL,
  node TEXT NOT NULL,
  PRIMARY KEY (product, role, user_id, node)
) WITHOUT ROWID;
CREATE INDEX online_by_node ON online (node);

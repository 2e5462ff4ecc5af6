-- How many sockets a node has [BAL1]. Null: it takes no clients now, or is of a version that does not say.
ALTER TABLE nodes ADD COLUMN sockets integer;

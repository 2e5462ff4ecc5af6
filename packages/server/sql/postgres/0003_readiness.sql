-- Whether the database takes writes now, as readiness asks [HEALTH1]: one row, written over and over.
CREATE TABLE readiness (
  tried_at timestamptz NOT NULL
) WITH (fillfactor = 50);

INSERT INTO readiness VALUES (clock_timestamp());

-- A small write that commits, and some blocks of a temporary file, which is gone afterwards: on a full disk the row's own page
-- may have room for a long time, while no table can grow. The file is where the tables are.
CREATE FUNCTION try_write() RETURNS void
LANGUAGE plpgsql SET work_mem = '64kB' SET temp_tablespaces = '' AS $$
BEGIN
  UPDATE readiness SET tried_at = clock_timestamp();
  PERFORM count(*) FROM generate_series(1, 4000);
END
$$;

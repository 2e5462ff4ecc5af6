-- Groups of participants of one role [GROUP1]. Members are in the order of the list.
CREATE TABLE call_groups (
  product text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  strategy text NOT NULL,
  member_ring_ms int NOT NULL,
  ring_ms int NOT NULL,
  PRIMARY KEY (product, role, name)
);

CREATE TABLE call_group_members (
  product text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  group_name text COLLATE "C" NOT NULL,
  turn int NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (product, role, group_name, turn)
);

CREATE INDEX groups_of_member ON call_group_members (product, role, user_id, group_name);

-- Each statement of the function sees what is committed by then. The row of the group, which comes first, makes two that
-- put the same group at once come one after the other: neither leaves members of the other behind.
CREATE FUNCTION put_group(
  of_product text, of_role text, of_name text, its_strategy text, its_member_ring_ms int, its_ring_ms int, its_members text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO call_groups (product, role, name, strategy, member_ring_ms, ring_ms)
  VALUES (of_product, of_role, of_name, its_strategy, its_member_ring_ms, its_ring_ms)
  ON CONFLICT (product, role, name) DO UPDATE
  SET strategy = excluded.strategy, member_ring_ms = excluded.member_ring_ms, ring_ms = excluded.ring_ms;
  DELETE FROM call_group_members WHERE product = of_product AND role = of_role AND group_name = of_name;
  INSERT INTO call_group_members (product, role, group_name, turn, user_id)
  SELECT of_product, of_role, of_name, turn, user_id
  FROM json_array_elements_text(its_members::json) WITH ORDINALITY AS member (user_id, turn);
END
$$;

CREATE FUNCTION remove_group(of_product text, of_role text, of_name text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  was_there boolean;
BEGIN
  DELETE FROM call_groups WHERE product = of_product AND role = of_role AND name = of_name;
  was_there := FOUND;
  DELETE FROM call_group_members WHERE product = of_product AND role = of_role AND group_name = of_name;
  RETURN was_there;
END
$$;

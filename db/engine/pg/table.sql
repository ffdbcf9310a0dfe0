-- What one database has, of which {n} is the index. bytea compares as memcmp does, whatever the
-- locale. An xt of 1099511627775 is for ever: records that do not expire are not in the index, and
-- changes of them need not touch it. The space that fillfactor leaves is for new versions of records
-- beside the old ones.
CREATE TABLE r{n} (k bytea PRIMARY KEY, v bytea NOT NULL, xt bigint NOT NULL, ver bigint NOT NULL)
  WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE r{n} ALTER v SET STORAGE EXTERNAL;
CREATE INDEX r{n}_xt ON r{n} (xt) WHERE xt < 1099511627775;

-- Whoever adds or removes records has the database's lock, shared, until the commit. Who has it
-- exclusively (a transaction, a clear) is alone.

-- put is a group of sets without conditions: nearly all groups are. With nowait, -1 says that
-- somebody has the database alone. (Who waits to have it alone comes before those who try.)
--
-- One statement stores all of them, and the loops of its plan keep the order of the keys. INSERT with
-- ON CONFLICT first looks whether there is a record, then locks it, then replaces it, so an UPDATE is
-- quicker where it finds one; but only a single key can have both in turn, and no order of keys to
-- keep.
CREATE FUNCTION put_{n}(p_lane bigint, p_writer bytea, p_seq bigint, p_rev bigint, ks bytea[], vs bytea[], xts bigint[], p_ups int, p_body bytea, nowait bool)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  added bigint := 0;
  mine  bool := CASE WHEN nowait THEN pg_try_advisory_xact_lock_shared({database}, {n})
    ELSE pg_advisory_xact_lock_shared({database}, {n}) IS NOT NULL END;
  one   bool := cardinality(ks) = 1;
BEGIN
  IF NOT mine THEN
    RETURN -1;
  END IF;
  IF one THEN
    UPDATE r{n} SET v = vs[1], xt = xts[1], ver = p_rev WHERE k = ks[1];
  END IF;
  IF NOT (one AND FOUND) THEN
    WITH w AS (
      INSERT INTO r{n} SELECT t.k, t.v, t.xt, p_rev FROM unnest(ks, vs, xts) t(k, v, xt)
      ON CONFLICT (k) DO UPDATE SET v = excluded.v, xt = excluded.xt, ver = excluded.ver
      RETURNING xmax -- 0 where there was no record
    ) SELECT count(*) INTO added FROM w WHERE xmax = 0;
    IF added > 0 THEN
      INSERT INTO deltas VALUES ({n}, added);
    END IF;
  END IF;
  RETURN note(p_lane, p_writer, p_seq, cardinality(ks), p_ups, NULL, 0, NULL, NULL, p_body);
END $$;

-- mix is a group of changes with conditions, and of removals, of this database alone. It does what
-- write does, without the time that takes to plan statements with names in them. p_ups: updates of
-- all changes. nowait and -1 are as in put.
CREATE FUNCTION mix_{n}(p_lane bigint, p_writer bytea, p_seq bigint, p_rev bigint, ks bytea[], vs bytea[], xts bigint[], ifs bigint[], ops smallint[],
  counts int[], p_ups int, p_body bytea, nowait bool, OUT at bigint, OUT ups int, OUT won smallint[]) LANGUAGE plpgsql AS $$
DECLARE
  mine bool := CASE WHEN nowait THEN pg_try_advisory_xact_lock_shared({database}, {n})
    ELSE pg_advisory_xact_lock_shared({database}, {n}) IS NOT NULL END;
BEGIN
  IF NOT mine THEN
    at := -1;
    RETURN;
  END IF;
  won := part_{n}(ks, vs, xts, ifs, ops, p_rev);
  ups := p_ups;
  IF won IS NOT NULL THEN
    FOR i IN 1..cardinality(won) LOOP
      IF won[i] <> 1 THEN
        ups := ups - counts[i];
      END IF;
    END LOOP;
  END IF;
  at := note(p_lane, p_writer, p_seq, cardinality(ks), ups, won, 0, NULL, NULL, p_body);
END $$;

-- part makes changes with conditions, in the order of their keys, and returns won as groups_0 has
-- it: NULL if all of them were made.
CREATE FUNCTION part_{n}(ks bytea[], vs bytea[], xts bigint[], ifs bigint[], ops smallint[], p_rev bigint)
RETURNS smallint[] LANGUAGE plpgsql AS $$
DECLARE
  won   smallint[] := '{}';
  one   smallint;
  added int := 0;
  fresh bool;
  made  int;
  n     int := cardinality(ks);
BEGIN
  -- Increments and the like replace records that were read, or add records where none was. As in
  -- put, one statement does it. What has this group's revision afterwards, which no other group
  -- has, was made.
  IF 0 = ALL (ops) AND (1 < ALL (ifs) OR 1 = ALL (ifs)) THEN
    IF ifs[1] = 1 THEN
      INSERT INTO r{n} SELECT t.k, t.v, t.xt, p_rev FROM unnest(ks, vs, xts) t(k, v, xt) ON CONFLICT DO NOTHING;
      GET DIAGNOSTICS made = ROW_COUNT;
      IF made > 0 THEN
        INSERT INTO deltas VALUES ({n}, made);
      END IF;
    ELSE
      UPDATE r{n} r SET v = t.v, xt = t.xt, ver = p_rev FROM unnest(ks, vs, xts, ifs) t(k, v, xt, ver) WHERE r.k = t.k AND r.ver = t.ver;
      GET DIAGNOSTICS made = ROW_COUNT;
    END IF;
    IF made = n THEN
      RETURN NULL;
    END IF;
    SELECT array_agg((r.ver IS NOT NULL)::int::smallint ORDER BY t.i) INTO won
      FROM unnest(ks) WITH ORDINALITY t(k, i) LEFT JOIN r{n} r ON r.k = t.k AND r.ver = p_rev;
    RETURN won;
  END IF;
  FOR i IN 1..n LOOP
    one := 0;
    IF ops[i] = 0 THEN
      IF ifs[i] = 0 THEN
        INSERT INTO r{n} VALUES (ks[i], vs[i], xts[i], p_rev)
          ON CONFLICT (k) DO UPDATE SET v = excluded.v, xt = excluded.xt, ver = excluded.ver RETURNING xmax = 0 INTO fresh;
        one := 1;
        IF fresh THEN
          added := added + 1;
        END IF;
      ELSIF ifs[i] = 1 THEN
        INSERT INTO r{n} VALUES (ks[i], vs[i], xts[i], p_rev) ON CONFLICT DO NOTHING;
        IF FOUND THEN
          one := 1;
          added := added + 1;
        END IF;
      ELSE
        UPDATE r{n} SET v = vs[i], xt = xts[i], ver = p_rev WHERE k = ks[i] AND ver = ifs[i];
        IF FOUND THEN
          one := 1;
        END IF;
      END IF;
    ELSIF ops[i] = 1 THEN
      IF ifs[i] = 0 THEN
        DELETE FROM r{n} WHERE k = ks[i];
        one := 2;
      ELSE
        DELETE FROM r{n} WHERE k = ks[i] AND ver = ifs[i];
      END IF;
      IF FOUND THEN
        one := 1;
        added := added - 1;
      END IF;
    ELSIF ifs[i] = 1 THEN
      -- a record that is not there cannot be locked: nobody can add one before our end
      INSERT INTO r{n} VALUES (ks[i], '', 1099511627775, 0) ON CONFLICT DO NOTHING;
      IF FOUND THEN
        DELETE FROM r{n} WHERE k = ks[i];
        one := 2;
      END IF;
    ELSE
      PERFORM 1 FROM r{n} WHERE k = ks[i] AND ver = ifs[i] FOR SHARE;
      IF FOUND THEN
        one := 2;
      END IF;
    END IF;
    won := won || one;
  END LOOP;
  IF added <> 0 THEN
    INSERT INTO deltas VALUES ({n}, added);
  END IF;
  RETURN nullif(won, array_fill(1::smallint, ARRAY[n]));
END $$;

-- hold locks keys, whether they have records or not, and returns their revisions: 0 for none. Where
-- there is none it stores one with the revision 0, which nobody else sees, and which free removes.
CREATE FUNCTION hold_{n}(ks bytea[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  vers bigint[] := '{}';
  x    bigint;
BEGIN
  FOR i IN 1..cardinality(ks) LOOP
    LOOP
      SELECT ver INTO x FROM r{n} WHERE k = ks[i] FOR UPDATE;
      EXIT WHEN FOUND;
      INSERT INTO r{n} VALUES (ks[i], '', 1099511627775, 0) ON CONFLICT DO NOTHING;
      x := 0;
      EXIT WHEN FOUND;
    END LOOP;
    vers := vers || x;
  END LOOP;
  RETURN vers;
END $$;

-- free removes what hold has stored. The keys stay locked: who wants to store one of them waits for
-- the transaction that has stored it before.
CREATE FUNCTION free_{n}(ks bytea[]) RETURNS void LANGUAGE sql AS $$
  DELETE FROM r{n} WHERE k = ANY(ks) AND ver = 0
$$;

-- clear removes all records, without those that are claimed; the caller has the database's lock. TRUNCATE is quick, but it waits for
-- all who read, and is seen by snapshots that were taken before it. So it must not come with
-- other changes, and steps aside for who reads for long, such as a backup.
CREATE FUNCTION clear_{n}(nothing_else bool) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  have    bigint;
  emptied bool := false;
BEGIN
  SELECT coalesce(sum(n), 0) INTO have FROM deltas WHERE db = {n};
  IF nothing_else AND have > 10000 THEN
    BEGIN
      SET LOCAL lock_timeout = '100ms';
      TRUNCATE r{n};
      emptied := true;
    EXCEPTION WHEN lock_not_available THEN
      NULL;
    END;
    SET LOCAL lock_timeout = 0;
  END IF;
  IF NOT emptied THEN
    DELETE FROM r{n};
    GET DIAGNOSTICS have = ROW_COUNT;
  END IF;
  IF have <> 0 THEN
    INSERT INTO deltas VALUES ({n}, -have);
  END IF;
END $$;

-- sweep removes records that have expired. It passes over those that somebody is changing, and over
-- the whole database while somebody has it alone.
CREATE FUNCTION sweep_{n}(before bigint, most int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  removed int;
BEGIN
  IF NOT pg_try_advisory_xact_lock_shared({database}, {n}) THEN
    RETURN 0;
  END IF;
  -- the second condition lets the index be used
  DELETE FROM r{n} WHERE k IN (
    SELECT k FROM r{n} WHERE xt < before AND xt < 1099511627775 ORDER BY xt LIMIT most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS removed = ROW_COUNT;
  IF removed > 0 THEN
    INSERT INTO deltas VALUES ({n}, -removed);
  END IF;
  RETURN removed;
END $$;

-- Functions of claims answer 0 when they have done it, 2 when the claim's term has ended, and 3 when
-- somebody has the database alone, or waits for that: they do not wait.

-- take claims the first live record between two keys; 1: there is none.
CREATE FUNCTION take_{n}(p_holder text, p_term bigint, p_mark bytea, p_number bigint, start bytea, upto bytea, now bigint)
RETURNS TABLE (o_k bytea, o_v bytea, o_xt bigint, o_ver bigint, o_state int) LANGUAGE plpgsql AS $$
BEGIN
  o_state := 0;
  IF NOT pg_try_advisory_xact_lock_shared({database}, {n}) THEN
    o_state := 3;
  ELSIF NOT lasts(p_holder, p_term, p_mark) THEN
    o_state := 2;
  ELSE
    SELECT k, v, xt, ver INTO o_k, o_v, o_xt, o_ver FROM r{n}
      WHERE k >= start AND k < upto AND xt >= now ORDER BY k LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
      DELETE FROM r{n} WHERE k = o_k;
      INSERT INTO claimed (holder, term, mark, number, db, k, v, xt, ver) VALUES (p_holder, p_term, p_mark, p_number, {n}, o_k, o_v, o_xt, o_ver);
      INSERT INTO deltas VALUES ({n}, -1);
    ELSE
      o_state := 1;
    END IF;
  END IF;
  RETURN NEXT;
END $$;

-- finish forgets a claimed record, and notes its group. The removal is logged unless the key has a
-- record again: an insert of our own finds that out, and keeps others from it until the end. Where
-- there is no claim, only the note of its group says that an earlier attempt has ended the claim; 1:
-- none has. The deletion waits for an attempt that is under way.
CREATE FUNCTION finish_{n}(p_holder text, p_term bigint, p_mark bytea, p_number bigint, p_lane bigint, p_writer bytea, p_seq bigint, p_ups int, p_body bytea)
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  key bytea;
BEGIN
  IF NOT pg_try_advisory_xact_lock_shared({database}, {n}) THEN
    RETURN 3;
  END IF;
  DELETE FROM claimed WHERE holder = p_holder AND term = p_term AND mark = p_mark AND number = p_number AND db = {n} RETURNING k INTO key;
  IF NOT FOUND THEN
    PERFORM waits();
    RETURN CASE WHEN made(p_lane, p_writer, p_seq) THEN 0 ELSE 1 END;
  END IF;
  INSERT INTO r{n} VALUES (key, '', 1099511627775, 0) ON CONFLICT DO NOTHING;
  IF FOUND THEN
    DELETE FROM r{n} WHERE k = key;
    PERFORM note(p_lane, p_writer, p_seq, 1, p_ups, NULL, 0, NULL, NULL, p_body);
  ELSE
    PERFORM note(p_lane, p_writer, p_seq, 1, 0, NULL, 0, NULL, NULL, NULL);
  END IF;
  RETURN 0;
END $$;

-- give makes a claimed record visible again; 1: a record has that key.
CREATE FUNCTION give_{n}(p_holder text, p_term bigint, p_mark bytea, p_number bigint, p_k bytea, p_rev bigint, p_lane bigint, p_writer bytea, p_seq bigint, p_ups int, p_body bytea)
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  was bytea;
BEGIN
  IF NOT pg_try_advisory_xact_lock_shared({database}, {n}) THEN
    RETURN 3;
  END IF;
  SELECT v INTO was FROM claimed WHERE holder = p_holder AND term = p_term AND mark = p_mark AND number = p_number AND db = {n} FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM waits();
    RETURN 0;
  END IF;
  INSERT INTO r{n} VALUES (p_k, was, 1099511627775, p_rev) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN 1;
  END IF;
  DELETE FROM claimed WHERE holder = p_holder AND term = p_term AND mark = p_mark AND number = p_number;
  INSERT INTO deltas VALUES ({n}, 1);
  PERFORM note(p_lane, p_writer, p_seq, 1, p_ups, NULL, 0, NULL, NULL, p_body);
  RETURN 0;
END $$;

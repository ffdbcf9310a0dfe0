-- Everything of gotycoon in a PostgreSQL: what all databases share. table.sql has what each of them
-- has. Both are carried out by Init; words in braces stand for the numbers of locks.go.

CREATE SCHEMA gotycoon;
SET LOCAL search_path = gotycoon;

-- format, log, id, sid, names
CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);

-- A revision is a lane (20 bits) and the number of its group (33 bits), so no two groups have the
-- same one. The last lane is left out, and so is engine.Replaced. The sequence proposes numbers of
-- lanes; the table has whose each lane is, for ever. See lanes.go, and the function note.
CREATE SEQUENCE lanes MAXVALUE 1048574;
CREATE TABLE writers (lane bigint PRIMARY KEY, writer bytea NOT NULL);
-- The last stamp. A table's row would be locked until its writer commits; this is not.
CREATE SEQUENCE stamps;
-- A stamp up to which the log was complete when it was noted, for standbys.
CREATE SEQUENCE horizon;

-- One row for each group: the note that it has been made, and its updates. Rows are only inserted,
-- and three tables are used in turn and emptied as a whole. Rows that were updated or deleted would
-- stay, and slow everybody down, for as long as anybody has an old snapshot open.
CREATE TABLE groups_0 (
  lane  bigint NOT NULL,
  seq   bigint NOT NULL,
  stamp bigint,         -- of the first update; NULL: nothing is logged
  n     int NOT NULL,   -- changes; -1: the group was settled, it never will be made
  ups   int NOT NULL,   -- updates that are logged
  won   smallint[],     -- by change: 0 lost, 1 made and logged, 2 won, and there was nothing to do; NULL: all 1
  dbid  int,            -- Position
  place bytea,
  body  bytea,          -- updates, see body.go
  settled timestamptz,  -- where n is -1: since when
  PRIMARY KEY (lane, seq)
) WITH (toast_tuple_target = 8160, autovacuum_enabled = off);
-- Compression would take more of the processor than all the rest of a group.
ALTER TABLE groups_0 ALTER body SET STORAGE EXTERNAL;
CREATE INDEX groups_0_stamp ON groups_0 (stamp) WHERE stamp IS NOT NULL;
CREATE INDEX groups_0_settled ON groups_0 (settled) WHERE settled IS NOT NULL;
CREATE TABLE groups_1 (LIKE groups_0 INCLUDING ALL) WITH (toast_tuple_target = 8160, autovacuum_enabled = off);
CREATE TABLE groups_2 (LIKE groups_0 INCLUDING ALL) WITH (toast_tuple_target = 8160, autovacuum_enabled = off);

-- Which table groups go to: a sequence, because a function of one number reads it, and no query.
CREATE SEQUENCE active MINVALUE 0 MAXVALUE 2;
SELECT setval('active', 0);
-- Since when, and up to which stamp the log has been removed.
CREATE TABLE rotation (since timestamptz NOT NULL, trimmed bigint NOT NULL);
INSERT INTO rotation VALUES (now(), 0);

-- How many records each database has: the sum of its rows. Writers add rows, and every few seconds
-- somebody makes one row of them. A row that each writer updates would make them wait for each other.
CREATE TABLE deltas (db int NOT NULL, n bigint NOT NULL);

-- Records that are claimed, in a term of a lease. Of two with the same key the one with the larger
-- id is newer. db is -1 where settle_claim has noted that a claim was not made and never will be.
CREATE TABLE claimed (
  holder text NOT NULL, term bigint NOT NULL, mark bytea NOT NULL, number bigint NOT NULL,
  id     bigint GENERATED ALWAYS AS IDENTITY,
  db     int NOT NULL, k bytea NOT NULL, v bytea NOT NULL, xt bigint NOT NULL, ver bigint NOT NULL,
  PRIMARY KEY (holder, term, mark, number)
);
ALTER TABLE claimed ALTER v SET STORAGE EXTERNAL;
CREATE INDEX claimed_key ON claimed (db, k);

-- A term is known by its number and its mark, which is random: a PostgreSQL that was restored to the
-- past gives out numbers again.
CREATE TABLE leases (name text PRIMARY KEY, holder text NOT NULL, term bigint NOT NULL, mark bytea NOT NULL, ends timestamptz NOT NULL);

-- In the functions that each group calls, locks are taken by assignments: PERFORM is a query, which
-- takes longer than the lock.

-- stamp draws room stamps and returns the first one: UNIX milliseconds * 1,000,000 + a counter. The
-- lock {stamping} lasts until the commit and is shared: it tells readers of the log who has a stamp
-- and is not visible yet. The lock {mutex} lasts some microseconds, because reading and setting the
-- sequence is not one step. (nextval would be, but cannot follow the clock.)
CREATE FUNCTION stamp(room int, after bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  a  bigint;
  ok bool;
BEGIN
  ok := pg_advisory_xact_lock_shared({stamping}, 0) IS NULL;
  ok := pg_advisory_lock({mutex}, 0) IS NULL;
  a := greatest(pg_sequence_last_value('stamps') + 1, after + 1, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint * 1000000);
  a := setval('stamps', a + room - 1) - room + 1;
  ok := pg_advisory_unlock({mutex}, 0);
  RETURN a;
END $$;

-- note notes that a group has been made and logs its updates. It is the last thing that a group
-- does: all of its records are locked by now, so stamps of a key are in the order of its changes.
--
-- The note comes out of the row of writers that says that the lane is p_writer's. Without that row
-- there is no note, and the error undoes the group. So wherever PostgreSQL has a record with a
-- revision of a lane, the lane's writer has stored it.
CREATE FUNCTION note(p_lane bigint, p_writer bytea, p_seq bigint, p_n int, p_ups int, p_won smallint[], p_after bigint,
  p_dbid int, p_place bytea, p_body bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  at bigint;
  a  bigint := pg_sequence_last_value('active');
BEGIN
  IF p_ups > 0 OR p_place IS NOT NULL THEN
    at := stamp(greatest(p_ups, 1), p_after);
  END IF;
  IF a = 0 THEN
    INSERT INTO groups_0 SELECT p_lane, p_seq, at, p_n, p_ups, p_won, p_dbid, p_place, p_body
      FROM writers WHERE lane = p_lane AND writer = p_writer;
  ELSIF a = 1 THEN
    INSERT INTO groups_1 SELECT p_lane, p_seq, at, p_n, p_ups, p_won, p_dbid, p_place, p_body
      FROM writers WHERE lane = p_lane AND writer = p_writer;
  ELSE
    INSERT INTO groups_2 SELECT p_lane, p_seq, at, p_n, p_ups, p_won, p_dbid, p_place, p_body
      FROM writers WHERE lane = p_lane AND writer = p_writer;
  END IF;
  IF NOT FOUND THEN
    RAISE 'lane % is another server''s', p_lane USING ERRCODE = '{disowned}';
  END IF;
  RETURN at;
END $$;

-- waits makes the commit wait for the standby. One that has written nothing does not, be there an ID
-- of its transaction or not. But what it has seen may be this machine's alone: after a crash,
-- PostgreSQL shows what nobody has waited for.
CREATE FUNCTION waits() RETURNS void LANGUAGE sql AS $$
  SELECT pg_logical_emit_message(true, 'gotycoon', '')
$$;

-- settle returns the note of a group. Where there is none, it leaves one that says "never" in all
-- three tables, whichever the group may choose that is still on its way. The inserts wait for a
-- group that is being made. Notes of another writer's groups are not for p_writer:
-- p_n is -2 then.
CREATE FUNCTION settle(p_lane bigint, p_writer bytea, p_seq bigint, OUT p_n int, OUT p_ups int, OUT p_won smallint[], OUT p_stamp bigint)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM waits(); -- where all three tables have the note, there is nothing to write
  IF NOT EXISTS (SELECT FROM writers WHERE lane = p_lane AND writer = p_writer) THEN
    p_n := -2; -- not an error: this too is told when the standby has it, see waits
    p_ups := 0;
    RETURN;
  END IF;
  INSERT INTO groups_0 (lane, seq, n, ups, settled) VALUES (p_lane, p_seq, -1, 0, clock_timestamp()) ON CONFLICT DO NOTHING;
  INSERT INTO groups_1 (lane, seq, n, ups, settled) VALUES (p_lane, p_seq, -1, 0, clock_timestamp()) ON CONFLICT DO NOTHING;
  INSERT INTO groups_2 (lane, seq, n, ups, settled) VALUES (p_lane, p_seq, -1, 0, clock_timestamp()) ON CONFLICT DO NOTHING;
  SELECT g.n, g.ups, g.won, g.stamp INTO p_n, p_ups, p_won, p_stamp FROM (
    SELECT * FROM groups_0 UNION ALL SELECT * FROM groups_1 UNION ALL SELECT * FROM groups_2
  ) g WHERE g.lane = p_lane AND g.seq = p_seq ORDER BY g.n DESC LIMIT 1;
END $$;

-- made tells whether a group of p_writer was made, as long as there is its note. It leaves nothing
-- behind: settle does, for a group that may still be on its way.
CREATE FUNCTION made(p_lane bigint, p_writer bytea, p_seq bigint) RETURNS bool LANGUAGE sql AS $$
  SELECT EXISTS (SELECT FROM writers WHERE lane = p_lane AND writer = p_writer) AND (
    EXISTS (SELECT FROM groups_0 WHERE lane = p_lane AND seq = p_seq AND n >= 0) OR
    EXISTS (SELECT FROM groups_1 WHERE lane = p_lane AND seq = p_seq AND n >= 0) OR
    EXISTS (SELECT FROM groups_2 WHERE lane = p_lane AND seq = p_seq AND n >= 0))
$$;

-- lasts tells whether a term has not ended. Nothing keeps it from ending at once.
CREATE FUNCTION lasts(p_holder text, p_term bigint, p_mark bytea) RETURNS bool LANGUAGE sql AS $$
  SELECT EXISTS (SELECT FROM leases WHERE name = p_holder AND term = p_term AND mark = p_mark AND ends > clock_timestamp())
$$;

-- settle_claim returns what a take has claimed. Where that is nothing, it leaves a note with the
-- claim's number, so that a take which is still on its way fails; it waits for one under way.
CREATE FUNCTION settle_claim(p_holder text, p_term bigint, p_mark bytea, p_number bigint)
RETURNS TABLE (o_holder text, o_term bigint, o_mark bytea, o_number bigint, o_db int, o_k bytea, o_xt bigint, o_ver bigint, o_v bytea) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM waits();
  INSERT INTO claimed (holder, term, mark, number, db, k, v, xt, ver) VALUES (p_holder, p_term, p_mark, p_number, -1, '', '', 0, 0) ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT holder, term, mark, number, db, k, xt, ver, v FROM claimed
    WHERE holder = p_holder AND term = p_term AND mark = p_mark AND number = p_number AND db >= 0;
END $$;

-- abandoned returns claims of terms that have ended, until their values have so many bytes, and at
-- least one. Notes of settle_claim are of no use then: a take of such a term claims nothing.
--
-- A lease that seems to have ended may have been renewed in time, by a transaction that has not
-- committed yet: a standby can delay it. That transaction has the row. Where nobody has it the
-- update sees to it that a renewal which comes only now finds the lease ended.
CREATE FUNCTION abandoned(most int, bytes int)
RETURNS TABLE (o_holder text, o_term bigint, o_mark bytea, o_number bigint, o_db int, o_k bytea, o_xt bigint, o_ver bigint, o_v bytea) LANGUAGE plpgsql AS $$
DECLARE
  l     record;
  c     record;
  below bigint;
  room  int := most;
  size  bigint := 0;
  at    timestamptz := clock_timestamp();
BEGIN
  FOR l IN SELECT name, term, ends <= at AS over FROM leases LOOP
    below := l.term;
    IF l.over AND EXISTS (SELECT FROM claimed WHERE holder = l.name AND term = l.term) THEN
      UPDATE leases SET ends = ends WHERE name = (
        SELECT name FROM leases WHERE name = l.name AND term = l.term AND ends <= at FOR UPDATE SKIP LOCKED);
      IF FOUND THEN
        below := l.term + 1;
      END IF;
    END IF;
    FOR c IN SELECT * FROM claimed WHERE holder = l.name AND term < below ORDER BY term, number LOOP
      IF c.db < 0 THEN
        DELETE FROM claimed WHERE holder = c.holder AND term = c.term AND mark = c.mark AND number = c.number;
        CONTINUE;
      END IF;
      IF room = 0 OR size >= bytes THEN
        RETURN;
      END IF;
      room := room - 1;
      size := size + length(c.v);
      o_holder := c.holder; o_term := c.term; o_mark := c.mark; o_number := c.number; o_db := c.db; o_k := c.k; o_xt := c.xt; o_ver := c.ver; o_v := c.v;
      RETURN NEXT;
    END LOOP;
  END LOOP;
END $$;

-- write makes a group. Its changes are arrays, ascending; those of the database dbs[i] end at
-- ends[i]. locks are its databases, ascending. ops: 0 store, 1 remove, 2 keep. counts: updates of a
-- change; before: updates of the clear. state: 0 made, 1 fenced, 2 lost as a whole. All databases
-- have their own functions (table.sql), because statements with names in them are planned once. With
-- nowait, state 3 says that somebody has the database ups alone, or uses the one that is cleared.
CREATE FUNCTION write(p_lane bigint, p_writer bytea, p_seq bigint, p_rev bigint, guard text, p_term bigint, p_mark bytea, locks int[], cleared int, before int,
  dbs int[], ends int[], ks bytea[], vs bytea[], xts bigint[], ifs bigint[], ops smallint[], counts int[], whole bool,
  p_after bigint, p_dbid int, p_place bytea, p_body bytea, nowait bool,
  OUT state int, OUT at bigint, OUT ups int, OUT won smallint[]) LANGUAGE plpgsql AS $$
DECLARE
  d     int;
  first int := 1;
  last  int;
  part  smallint[];
  vers  bigint[] := '{}';
  mine  bool;
BEGIN
  state := 0;
  ups := before;
  won := '{}';
  FOREACH d IN ARRAY locks LOOP
    IF d = cleared THEN
      mine := CASE WHEN nowait THEN pg_try_advisory_xact_lock({database}, d)
        ELSE pg_advisory_xact_lock({database}, d) IS NOT NULL END;
    ELSE
      mine := CASE WHEN nowait THEN pg_try_advisory_xact_lock_shared({database}, d)
        ELSE pg_advisory_xact_lock_shared({database}, d) IS NOT NULL END;
    END IF;
    IF NOT mine THEN
      state := 3;
      ups := d;
      RETURN;
    END IF;
  END LOOP;
  IF guard IS NOT NULL THEN
    -- until the commit nobody else becomes the holder
    PERFORM 1 FROM leases l WHERE l.name = guard AND l.term = p_term AND l.mark = p_mark AND l.ends > clock_timestamp() FOR SHARE;
    IF NOT FOUND THEN
      state := 1;
      RETURN;
    END IF;
  END IF;
  IF cleared IS NOT NULL THEN
    EXECUTE 'SELECT clear_' || cleared || '($1)' USING cardinality(ks) = 0;
  END IF;
  IF whole THEN
    -- first all conditions, under the locks that the changes need
    FOR i IN 1..cardinality(dbs) LOOP
      EXECUTE 'SELECT hold_' || dbs[i] || '($1)' INTO vers USING ks[first:ends[i]];
      FOR j IN first..ends[i] LOOP
        IF ifs[j] = 0 OR ifs[j] = 1 AND vers[j - first + 1] = 0 OR ifs[j] > 1 AND vers[j - first + 1] = ifs[j] THEN
          won := won || 1::smallint;
        ELSE
          won := won || 0::smallint;
          state := 2;
        END IF;
      END LOOP;
      first := ends[i] + 1;
    END LOOP;
    first := 1;
    FOR i IN 1..cardinality(dbs) LOOP
      EXECUTE 'SELECT free_' || dbs[i] || '($1)' USING ks[first:ends[i]];
      first := ends[i] + 1;
    END LOOP;
    IF state = 2 THEN
      RETURN;
    END IF;
    first := 1;
    won := '{}';
  END IF;
  FOR i IN 1..cardinality(dbs) LOOP
    last := ends[i];
    EXECUTE 'SELECT part_' || dbs[i] || '($1, $2, $3, $4, $5, $6)' INTO part
      USING ks[first:last], vs[first:last], xts[first:last], ifs[first:last], ops[first:last], p_rev;
    won := won || coalesce(part, array_fill(1::smallint, ARRAY[last - first + 1]));
    first := last + 1;
  END LOOP;
  FOR i IN 1..cardinality(won) LOOP
    IF won[i] = 1 THEN
      ups := ups + counts[i];
    END IF;
  END LOOP;
  at := note(p_lane, p_writer, p_seq, cardinality(ks), ups, won, p_after, p_dbid, p_place, p_body);
END $$;

-- rotate goes on to the next table of groups, which has the oldest ones, and empties it, when the
-- present one is older than p_least seconds, and also than p_age seconds or larger than p_size bytes. It
-- is one statement, so that a server that stands still never has the lock of a table; and it sets
-- active under the lock {fold}, so that nobody goes back to a table that others have left. Writers
-- who see that before the commit wait for it; where there is none, they add to the old rows, which
-- then only go later. It gives up where somebody reads the table for long, such as a backup.
--
-- "Never" is kept for a day: behind a lock, or on a network that repeats what was lost, a group that
-- was settled can arrive late.
CREATE FUNCTION rotate(p_least float8, p_age float8, p_size bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  was   int;
  next  text;
  ls    bigint[];
  seqs  bigint[];
  times timestamptz[];
BEGIN
  IF NOT pg_try_advisory_xact_lock({fold}, 0) THEN
    RETURN;
  END IF;
  SELECT last_value INTO was FROM active;
  PERFORM 1 FROM rotation WHERE extract(epoch FROM clock_timestamp() - since) > p_least
    AND (extract(epoch FROM clock_timestamp() - since) > p_age OR pg_total_relation_size(('groups_' || was)::regclass) > p_size);
  IF NOT FOUND THEN
    RETURN;
  END IF;
  next := 'groups_' || (was + 1) % 3;
  SET LOCAL lock_timeout = '200ms';
  EXECUTE 'LOCK TABLE ' || next;
  -- the last update of a group has a later stamp than the group
  EXECUTE 'UPDATE rotation SET since = clock_timestamp(), trimmed = greatest(trimmed, (SELECT max(stamp + greatest(ups, 1) - 1) FROM ' || next || '))';
  EXECUTE 'SELECT array_agg(lane), array_agg(seq), array_agg(settled) FROM ' || next || ' WHERE settled > clock_timestamp() - interval ''1 day'''
    INTO ls, seqs, times;
  EXECUTE 'TRUNCATE ' || next;
  EXECUTE 'INSERT INTO ' || next || ' (lane, seq, n, ups, settled) SELECT l, s, -1, 0, t FROM unnest($1, $2, $3) u(l, s, t)' USING ls, seqs, times;
  PERFORM setval('active', (was + 1) % 3);
END $$;

-- fold makes one row of the deltas of each database. What others insert meanwhile stays.
CREATE FUNCTION fold() RETURNS void LANGUAGE sql AS $$
  WITH old AS (DELETE FROM deltas WHERE pg_try_advisory_xact_lock({fold}, 0) RETURNING db, n)
  INSERT INTO deltas SELECT db, sum(n) FROM old GROUP BY db
$$;

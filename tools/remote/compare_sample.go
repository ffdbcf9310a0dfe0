package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"time"

	"gotycoon/client"
)

// sampling compares some records of a database instead of all. The keys are chosen on both sides,
// so that a record which is only on one side can be found, whichever side that is:
//
//	a gotycoon server   gives the keys of a random range of hashes
//	an original         is read in short runs, which begin at keys of the other side
//
// An original reads a few thousand records for it rather than all.
type sampling struct {
	*pair
	dbs  [2]*client.DB
	size int64
	keys map[string]struct{}
}

// runLength is how many records of an original are read from a key on.
const runLength = 10

// find returns how many keys were looked at, and those whose records differ and stay different.
func (s *sampling) find(ctx context.Context) (looked int, certain map[string]digests, err error) {
	s.keys = map[string]struct{}{}
	for i := range s.dbs {
		if err := s.choose(ctx, i); err != nil {
			return 0, nil, s.fail(i, "DB::checksum", err)
		}
	}
	for i := range s.dbs {
		if s.reads[i] {
			if err := s.run(ctx, i); err != nil {
				return 0, nil, s.fail(i, "DB::cursor", err)
			}
		}
	}
	if certain, err = s.differing(ctx, maps.Keys(s.keys)); err != nil || len(certain) == 0 {
		return len(s.keys), nil, err
	}
	if err := s.giveTime(ctx); err != nil {
		return 0, nil, err
	}
	certain, err = s.differing(ctx, maps.Keys(certain))
	return len(s.keys), certain, err
}

// differing returns those of the keys whose records differ now.
func (s *sampling) differing(ctx context.Context, keys iter.Seq[string]) (map[string]digests, error) {
	found := map[string]digests{}
	for key := range keys {
		both, err := s.look(ctx, key)
		if err != nil {
			return nil, err
		}
		if both != (digests{}) {
			found[key] = both
		}
	}
	return found, nil
}

// lateSlave is the pause before what differs is looked at again if a side replicates. A slave of an
// original is a second late.
const lateSlave = 3 * time.Second

// giveTime waits before what differs is looked at again.
func (s *sampling) giveTime(ctx context.Context) error {
	long := betweenLooks
	for i, side := range s.sides {
		rows, err := side.Report(ctx)
		if err != nil {
			return s.fail(i, "DB::report", err)
		}
		if len(rows["repl_master_host"]) > 0 {
			long = lateSlave
		}
	}
	return pause(ctx, long)
}

// choose gets the keys of a random range of hashes. An original, which has no hashes, is noted.
func (s *sampling) choose(ctx context.Context, side int) error {
	rows, err := s.dbs[side].Status(ctx)
	if err != nil {
		return err
	}
	width := uint64(math.MaxUint64)
	if count := rows.Int("count"); count > s.size {
		width = uint64(float64(math.MaxUint64) / float64(count) * float64(s.size))
	}
	from := rand.Uint64N(math.MaxUint64 - width + 1)
	o := client.ChecksumOptions{Hash: true, At: time.Now().Add(margin), Ranges: []client.Range{{From: fmt.Sprintf("%016x", from), To: fmt.Sprintf("%016x", from+width)}}}
	found, _, _, err := s.dbs[side].Digests(ctx, o, int(2*s.size))
	if notImplemented(err) {
		s.reads[side] = true
		return nil
	}
	for key := range found {
		s.keys[key] = struct{}{}
	}
	return err
}

// run reads records behind keys of the other side, or from the beginning if there are none.
func (s *sampling) run(ctx context.Context, side int) error {
	starts := make([]string, 0, s.size/runLength+1)
	for key := range s.keys {
		if starts = append(starts, key); int64(len(starts)) > s.size/runLength {
			break
		}
	}
	cursor := s.dbs[side].Cursor()
	defer cursor.Close()
	if len(starts) == 0 {
		err := cursor.Jump(ctx)
		return s.steps(ctx, cursor, s.size, err)
	}
	for _, key := range starts {
		if err := s.steps(ctx, cursor, runLength, cursor.JumpKey(ctx, key)); err != nil {
			return err
		}
	}
	return nil
}

// steps adds the keys of so many records; jumped is the error of the jump.
func (s *sampling) steps(ctx context.Context, cursor *client.Cursor, n int64, jumped error) error {
	err := jumped
	for ; err == nil && n > 0; n-- {
		var key string
		if key, err = cursor.GetKey(ctx, true); err == nil {
			s.keys[key] = struct{}{}
		}
	}
	if errors.Is(err, client.ErrNoRecord) {
		return nil
	}
	return err
}

// look reads a key on both sides, and returns on which there is a record if the two differ. A
// record that expires soon counts as none.
func (s *sampling) look(ctx context.Context, key string) (both digests, err error) {
	var records [2]client.Record
	var there [2]bool
	for i, db := range s.dbs {
		r, err := db.GetRecord(ctx, key)
		if err != nil && !errors.Is(err, client.ErrNoRecord) {
			return both, s.fail(i, "DB::get", err)
		}
		there[i] = err == nil && (r.Expires.IsZero() || time.Until(r.Expires) > margin)
		records[i] = r
	}
	if there[0] && there[1] && bytes.Equal(records[0].Value, records[1].Value) && records[0].Expires.Equal(records[1].Expires) {
		return both, nil
	}
	for i, mark := range [...]string{"first", "second"} {
		if there[i] {
			both[i] = mark
		}
	}
	return both, nil
}

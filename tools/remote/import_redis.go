package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gotycoon/client"
	"gotycoon/tools/redisfile"
	"gotycoon/tools/show"
)

// redisSource is what RDB and AOF have in common: strings become records, with their expiration
// times. Values of other types are left out and counted: an element of a list or of a set is no
// record that a client would look for, whatever key one made up for it.
type redisSource struct {
	*call
	database int
}

// rdbSource is an RDB file.
type rdbSource struct{ redisSource }

func (s *rdbSource) read(ctx context.Context, to sink) error {
	in, _, err := s.input()
	if err != nil {
		return err
	}
	defer in.Close()
	left, err := redisfile.RDB(in, s.database, func(key, value []byte, expires int64) error {
		return to.put(ctx, change{key: string(key), value: value, xt: redisXT(to, expires)}, len(key)+len(value))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.inputName(), err)
	}
	return s.leftOut(to, left)
}

// redisXT returns an expiration time of redis. Redis has milliseconds; a record lives until the end
// of its last second.
func redisXT(to sink, expires int64) client.Expiry {
	if expires == redisfile.Never {
		return to.never()
	}
	return client.Expiry(-expires)
}

// aofSource is an append-only file, or the files of one.
type aofSource struct{ redisSource }

func (s *aofSource) read(ctx context.Context, to sink) error {
	files, err := redisfile.AOFFiles(s.flags.Arg(0))
	if err != nil {
		return err
	}
	var left redisfile.Left
	for _, file := range files {
		one, err := s.file(ctx, to, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		left.Add(one)
	}
	return s.leftOut(to, left)
}

func (s *aofSource) file(ctx context.Context, to sink, path string) (redisfile.Left, error) {
	in, _, err := show.OpenInput(path)
	if err != nil {
		return redisfile.Left{}, err
	}
	defer in.Close()
	return redisfile.AOF(in.(io.Reader), s.database, &redisKeys{ctx: ctx, to: to})
}

// leftOut returns an error that says what was left out, so that nobody takes the import for
// complete.
func (s *redisSource) leftOut(to sink, left redisfile.Left) error {
	if left.Cut {
		to.note("the last command of the append-only file is not complete; it was left out, as redis does")
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(left.Types)) {
		parts = append(parts, fmt.Sprintf("%d %s", left.Types[name], name))
	}
	for _, db := range slices.Sorted(maps.Keys(left.Databases)) {
		text := fmt.Sprintf("%d of database %d (-redis-db %d)", left.Databases[db], db, db)
		if s.flags.Changed("redis-db") { // nobody has asked for them
			to.note("not asked for: %s", text)
		} else {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return errors.New("all strings of database " + fmt.Sprint(s.database) + " were stored; left out: " + strings.Join(parts, ", "))
}

// redisKeys carries out the commands of an append-only file.
type redisKeys struct {
	ctx context.Context
	to  sink
}

// Get implements redisfile.Keys.
func (k *redisKeys) Get(key string) (value []byte, expires int64, found bool, err error) {
	ch, found, err := k.to.lookup(k.ctx, key)
	if ch.xt < 0 { // an absolute time
		expires = int64(-ch.xt)
	}
	return ch.value, expires, found, err
}

// Set implements redisfile.Keys.
func (k *redisKeys) Set(key string, value []byte, expires int64) error {
	return k.to.put(k.ctx, change{key: key, value: value, xt: redisXT(k.to, expires)}, len(key)+len(value))
}

// Remove implements redisfile.Keys.
func (k *redisKeys) Remove(key string) error {
	return k.to.put(k.ctx, change{key: key, removed: true}, len(key))
}

// Clear implements redisfile.Keys.
func (k *redisKeys) Clear() error { return k.to.clear(k.ctx) }

package redisfile

import (
	"math"
	"strconv"
	"strings"
)

// execute carries out a command. Redis writes times as absolute ones, and the effects of scripts
// instead of the scripts. Commands for other types than strings are counted, and so are the few for
// strings that are not known here: their keys do not have their last values then.
func (a *aof) execute(args [][]byte) error {
	name := strings.ToUpper(string(args[0]))
	words := make([]string, len(args)-1)
	for i, arg := range args[1:] {
		words[i] = string(arg)
	}
	switch name {
	case "SELECT":
		n, err := strconv.Atoi(firstOf(words))
		if err != nil {
			return damaged("SELECT %q", words)
		}
		a.database = n
		return nil
	case "FLUSHALL":
		return a.keys.Clear()
	case "PING", "PUBLISH", "SPUBLISH", "SCRIPT", "FUNCTION", "DISCARD":
		return nil // nothing that a database has
	}
	if a.database != a.wanted {
		a.left.ofDatabase(a.database)
		return nil
	}
	done, err := a.change(name, words)
	if err == nil && !done {
		a.left.ofType(name)
	}
	return err
}

func firstOf(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// change carries out a command on keys of the database. It returns false for a command that it does
// not know.
func (a *aof) change(name string, w []string) (done bool, err error) {
	switch {
	case name == "FLUSHDB":
		return true, a.keys.Clear()
	case name == "DEL" || name == "UNLINK" || name == "GETDEL":
		for _, key := range w {
			if err := a.keys.Remove(key); err != nil {
				return true, err
			}
		}
		return true, nil
	case name == "SET" && len(w) >= 2:
		return a.set(w[0], w[1], w[2:])
	case (name == "SETNX" || name == "GETSET") && len(w) == 2:
		return true, a.keys.Set(w[0], []byte(w[1]), Never)
	case (name == "MSET" || name == "MSETNX") && len(w)%2 == 0:
		for i := 0; i < len(w); i += 2 {
			if err := a.keys.Set(w[i], []byte(w[i+1]), Never); err != nil {
				return true, err
			}
		}
		return true, nil
	case name == "APPEND" && len(w) == 2:
		return true, a.modify(w[0], func(value []byte, expires int64, _ bool) ([]byte, int64, error) {
			return append(value[:len(value):len(value)], w[1]...), expires, nil
		})
	case name == "SETRANGE" && len(w) == 3:
		return true, a.setRange(w[0], w[1], w[2])
	case name == "INCR" || name == "DECR" || name == "INCRBY" || name == "DECRBY":
		return true, a.increment(name, w)
	case (name == "PEXPIREAT" || name == "EXPIREAT") && len(w) >= 2:
		return true, a.expireAt(w[0], w[1], name == "PEXPIREAT")
	case name == "PERSIST" && len(w) == 1:
		return true, a.renew(w[0], Never)
	case (name == "RENAME" || name == "RENAMENX") && len(w) == 2:
		if err := a.copy(w[0], w[1]); err != nil || w[0] == w[1] {
			return true, err
		}
		return true, a.keys.Remove(w[0])
	case name == "COPY" && (len(w) == 2 || len(w) == 3 && strings.EqualFold(w[2], "REPLACE")):
		return true, a.copy(w[0], w[1])
	}
	return false, nil
}

// set obeys the options of SET that a server writes into its AOF. A time that counts from a moment
// which the file does not tell is none of them.
func (a *aof) set(key, value string, options []string) (done bool, err error) {
	expires, keep := Never, false
	for i := 0; i < len(options); i++ {
		switch name := strings.ToUpper(options[i]); {
		case name == "NX" || name == "XX" || name == "GET": // it was carried out, or it would not be here
		case name == "KEEPTTL":
			keep = true
		case (name == "PXAT" || name == "EXAT") && i+1 < len(options):
			i++
			if expires, err = seconds(options[i], name == "PXAT"); err != nil {
				return true, err
			}
		default:
			return false, nil
		}
	}
	if keep {
		_, old, _, err := a.keys.Get(key)
		if err != nil {
			return true, err
		}
		expires = old
	}
	return true, a.keys.Set(key, []byte(value), expires)
}

// seconds reads an absolute time.
func seconds(text string, milli bool) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, damaged("the time %q", text)
	}
	if milli {
		n /= 1000
	}
	return max(1, n), nil
}

// modify stores what f makes of a key's value and expiration time.
func (a *aof) modify(key string, f func(value []byte, expires int64, found bool) ([]byte, int64, error)) error {
	value, expires, found, err := a.keys.Get(key)
	if err != nil {
		return err
	}
	if value, expires, err = f(value, expires, found); err != nil {
		return err
	}
	return a.keys.Set(key, value, expires)
}

func (a *aof) setRange(key, offset, part string) error {
	at, err := strconv.Atoi(offset)
	if err != nil || at < 0 || at > maxArg {
		return damaged("SETRANGE at %q", offset)
	}
	return a.modify(key, func(value []byte, expires int64, _ bool) ([]byte, int64, error) {
		changed := make([]byte, max(len(value), at+len(part)))
		copy(changed, value)
		copy(changed[at:], part)
		return changed, expires, nil
	})
}

func (a *aof) increment(name string, w []string) error {
	by, err := int64(1), error(nil)
	if strings.HasSuffix(name, "BY") && len(w) == 2 {
		by, err = strconv.ParseInt(w[1], 10, 64)
	}
	if err != nil || len(w) == 0 || by == math.MinInt64 {
		return damaged("%s %q", name, w)
	}
	if strings.HasPrefix(name, "DECR") {
		by = -by
	}
	return a.modify(w[0], func(value []byte, expires int64, found bool) ([]byte, int64, error) {
		n := int64(0)
		if found {
			if n, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return nil, 0, damaged("%s of %q, which is no number", name, w[0])
			}
		}
		return strconv.AppendInt(nil, n+by, 10), expires, nil
	})
}

func (a *aof) expireAt(key, at string, milli bool) error {
	expires, err := seconds(at, milli)
	if err != nil {
		return err
	}
	return a.renew(key, expires)
}

// renew gives a key another expiration time. A key without a string is none of ours.
func (a *aof) renew(key string, expires int64) error {
	value, _, found, err := a.keys.Get(key)
	if err != nil || !found {
		return err
	}
	return a.keys.Set(key, value, expires)
}

// copy makes a key what another key is: a key without a string replaces a string by nothing.
func (a *aof) copy(from, to string) error {
	value, expires, found, err := a.keys.Get(from)
	switch {
	case err != nil:
		return err
	case !found:
		return a.keys.Remove(to)
	}
	return a.keys.Set(to, value, expires)
}

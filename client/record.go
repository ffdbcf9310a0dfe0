package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// store calls a procedure that takes a key, a value and an expiration time.
func (db *DB) store(ctx context.Context, proc, key string, value []byte, expires Expiry) error {
	_, err := db.Call(ctx, proc, append([]string{"key", key, "value", string(value)}, expires.param()...)...)
	return err
}

// Set stores a record, whether it exists or not. As with all calls that store a value, the record's
// expiration time is set anew.
func (db *DB) Set(ctx context.Context, key string, value []byte, expires Expiry) error {
	return db.store(ctx, "set", key, value, expires)
}

// Add stores a new record. It returns ErrDuplicate if the record exists.
func (db *DB) Add(ctx context.Context, key string, value []byte, expires Expiry) error {
	return db.store(ctx, "add", key, value, expires)
}

// Replace stores the value of an existing record. It returns ErrNoRecord if there is none.
func (db *DB) Replace(ctx context.Context, key string, value []byte, expires Expiry) error {
	return db.store(ctx, "replace", key, value, expires)
}

// Append appends value to the value of a record, or stores a new record.
func (db *DB) Append(ctx context.Context, key string, value []byte, expires Expiry) error {
	return db.store(ctx, "append", key, value, expires)
}

// Special values of orig for Increment. IncrementDouble takes infinities with the same signs
// instead.
const (
	OrigTry int64 = math.MinInt64 // return ErrConflict if there is no record
	OrigSet int64 = math.MaxInt64 // store num itself, whatever the record was
)

// Increment adds num to the whole number in a record and returns the sum. A missing record counts
// as orig, which may also be OrigTry or OrigSet. It returns ErrConflict if the record holds no such
// number.
func (db *DB) Increment(ctx context.Context, key string, num, orig int64, expires Expiry) (int64, error) {
	params := []string{"key", key, "num", strconv.FormatInt(num, 10), "orig", strconv.FormatInt(orig, 10)}
	out, err := db.Call(ctx, "increment", append(params, expires.param()...)...)
	return out.Int("num"), err
}

// IncrementDouble adds num to a number with a fraction and returns the sum, with six decimals. A
// missing record counts as orig. With a negative infinity as orig it returns ErrConflict instead;
// with a positive infinity it stores num, whatever the record was.
func (db *DB) IncrementDouble(ctx context.Context, key string, num, orig float64, expires Expiry) (float64, error) {
	params := []string{"key", key, "num", formatFloat(num), "orig", formatFloat(orig)}
	out, err := db.Call(ctx, "increment_double", append(params, expires.param()...)...)
	if err != nil {
		return 0, err
	}
	sum, err := strconv.ParseFloat(string(out["num"]), 64)
	if err != nil {
		return 0, fmt.Errorf("sum in the reply: %w", err)
	}
	return sum, nil
}

func formatFloat(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// CAS replaces the value oval by nval. A nil oval means that there must be no record, a nil nval
// that the record is removed. It returns ErrConflict if the record is in another state.
func (db *DB) CAS(ctx context.Context, key string, oval, nval []byte, expires Expiry) error {
	params := []string{"key", key}
	if oval != nil {
		params = append(params, "oval", string(oval))
	}
	if nval != nil {
		params = append(params, "nval", string(nval))
	}
	_, err := db.Call(ctx, "cas", append(params, expires.param()...)...)
	return err
}

// Remove removes a record. It returns ErrNoRecord if there is none.
func (db *DB) Remove(ctx context.Context, key string) error {
	_, err := db.Call(ctx, "remove", "key", key)
	return err
}

// Get returns the value of a record. It returns ErrNoRecord if there is none.
func (db *DB) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := db.GetRecord(ctx, key)
	return r.Value, err
}

// GetRecord returns a record with its expiration time. It returns ErrNoRecord if there is none.
func (db *DB) GetRecord(ctx context.Context, key string) (Record, error) {
	return db.record(ctx, "get", key)
}

// Seize removes a record and returns it. It returns ErrNoRecord if there is none.
func (db *DB) Seize(ctx context.Context, key string) (Record, error) {
	return db.record(ctx, "seize", key)
}

func (db *DB) record(ctx context.Context, proc, key string) (Record, error) {
	out, err := db.Call(ctx, proc, "key", key)
	return Record{Key: key, Value: out["value"], Expires: out.expires()}, err
}

// Touch sets when a record expires, and leaves its value as it is. It returns ErrNoRecord if there
// is none. Servers that do not know the procedure, such as the original, are asked for the value,
// and store it again unless another client has changed it meanwhile.
func (db *DB) Touch(ctx context.Context, key string, expires Expiry) error {
	_, err := db.Call(ctx, "touch", append([]string{"key", key}, expires.param()...)...)
	for errors.Is(err, errors.ErrUnsupported) || errors.Is(err, ErrConflict) {
		value, getErr := db.Get(ctx, key)
		if getErr != nil {
			return getErr
		}
		err = db.CAS(ctx, key, value, value, expires)
	}
	return err
}

// TTL returns how long a record still lives, as In takes it: 0 for one that does not expire. The
// server's clock says when a record expires, and this machine's clock how long that is from now. It
// returns ErrNoRecord if there is no record.
func (db *DB) TTL(ctx context.Context, key string) (time.Duration, error) {
	_, expires, err := db.Check(ctx, key)
	if err != nil || expires.IsZero() {
		return 0, err
	}
	return max(time.Until(expires), time.Nanosecond), nil
}

// Check returns the size of a value in bytes and its expiration time; the zero time means never. It
// returns ErrNoRecord if there is no record.
func (db *DB) Check(ctx context.Context, key string) (size int64, expires time.Time, err error) {
	out, err := db.Call(ctx, "check", "key", key)
	return out.Int("vsiz"), out.expires(), err
}

// Exists reports whether a record exists.
func (db *DB) Exists(ctx context.Context, key string) (bool, error) {
	_, _, err := db.Check(ctx, key)
	if errors.Is(err, ErrNoRecord) {
		return false, nil
	}
	return err == nil, err
}

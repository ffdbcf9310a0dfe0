package ordered

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/db/expr"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// sliceStore is a small store in byte order.
type sliceStore map[string]string

func (s sliceStore) Get(dst, key []byte, _ store.Reader) (value []byte, found bool, err error) {
	v, found := s[string(key)]
	return append(dst, v...), found, nil
}

func (s sliceStore) Apply(_ ulog.Stamp, ups []ulog.Update) {
	for _, u := range ups {
		switch u.Op {
		case ulog.OpSet:
			s[string(u.Key)] = string(u.Value)
		case ulog.OpRemove:
			delete(s, string(u.Key))
		case ulog.OpClear:
			clear(s)
		}
	}
}

func (s sliceStore) Scan(from store.Start, visit func(key, value []byte) bool) error {
	keys := slices.Sorted(maps.Keys(s))
	if from.Backward {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		order := cmp.Compare(key, string(from.Key))
		if from.Backward {
			order = -order
		}
		if !from.Edge && (order < 0 || order == 0 && !from.Inclusive) {
			continue
		}
		if !visit([]byte(key), []byte(s[key])) {
			return nil
		}
	}
	return nil
}

func (s sliceStore) Count() (int64, error) { return int64(len(s)), nil }
func (s sliceStore) Size() int64           { return 0 }
func (s sliceStore) Close() error          { return nil }

func scanned(t testing.TB, s store.Store, from store.Start) (keys []string) {
	t.Helper()
	require.NoError(t, s.Scan(from, func(key, value []byte) bool {
		require.Equal(t, "value of "+string(key), string(value))
		keys = append(keys, string(key))
		return true
	}))
	return keys
}

func fill(s store.Store, keys ...string) {
	var ups []ulog.Update
	for _, key := range keys {
		ups = append(ups, ulog.Update{Op: ulog.OpSet, Key: []byte(key), Value: []byte("value of " + key)})
	}
	s.Apply(1, ups)
}

func TestOrders(t *testing.T) {
	keys := []string{"1", "10", "9", "x", "-5", "010"}
	for order, want := range map[expr.Order][]string{ // recorded
		expr.Lexical:     {"-5", "010", "1", "10", "9", "x"},
		expr.LexicalDesc: {"x", "9", "10", "1", "010", "-5"},
		expr.Decimal:     {"-5", "x", "1", "9", "010", "10"},
		expr.DecimalDesc: {"10", "010", "9", "1", "x", "-5"},
	} {
		t.Run(order.String(), func(t *testing.T) {
			s := New(sliceStore{}, order)
			fill(s, keys...)
			require.Equal(t, want, scanned(t, s, store.Start{Edge: true}))
			back := slices.Clone(want)
			slices.Reverse(back)
			require.Equal(t, back, scanned(t, s, store.Start{Edge: true, Backward: true}))
			require.Equal(t, want[3:], scanned(t, s, store.Start{Key: []byte(want[3]), Inclusive: true}))
			require.Equal(t, want[4:], scanned(t, s, store.Start{Key: []byte(want[3])}))
			require.Equal(t, back[4:], scanned(t, s, store.Start{Key: []byte(back[3]), Backward: true}))

			value, found, err := s.Get([]byte("dst "), []byte("010"), nil)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "dst value of 010", string(value))

			s.Apply(2, []ulog.Update{{Op: ulog.OpRemove, Key: []byte("010")}})
			_, found, err = s.Get(nil, []byte("010"), nil)
			require.NoError(t, err)
			require.False(t, found)
			s.Apply(3, []ulog.Update{{Op: ulog.OpClear}})
			require.Empty(t, scanned(t, s, store.Start{Edge: true}))
		})
	}
}

func TestApplyLeavesTheUpdatesAlone(t *testing.T) {
	s := New(sliceStore{}, expr.Decimal)
	ups := []ulog.Update{{Op: ulog.OpSet, Key: []byte("10")}}
	s.Apply(1, ups)
	require.Equal(t, "10", string(ups[0].Key), "the log may still need it")
}

func TestSplitDecimal(t *testing.T) {
	const unit = 1e16
	for _, c := range []struct {
		key               string
		integer, fraction int64
	}{
		{"", 0, 0},
		{"x", 0, 0},
		{"12x", 12, 0},
		{" \t\x00\x7f-12", -12, 0},
		{"+5", 0, 0},
		{"--5", 0, 0},
		{"1.5", 1, unit / 2},
		{"-1.25", -1, -unit / 4},
		{"-.5", 0, -unit / 2},
		{"1.", 1, 0},
		{"1.x5", 1, 0},
		{"1.2.3", 1, unit / 5},
		{"0.12345678901234567", 0, 1234567890123456},
		{"9223372036854775807", 1<<63 - 1, 0},
		{"9223372036854775808", 1<<63 - 1, 0},
		{"99999999999999999999999999990", 1<<63 - 1, 0},
		{"-99999999999999999999999999990", -1<<63 + 1, 0},
	} {
		integer, fraction := splitDecimal([]byte(c.key))
		require.Equal(t, c.integer, integer, c.key)
		require.Equal(t, c.fraction, fraction, c.key)
	}
}

// TestDecimalKeysSortByNumber compares the bytes of encoded keys with what they stand for.
func TestDecimalKeysSortByNumber(t *testing.T) {
	key := rapid.OneOf(rapid.StringMatching(`[ -]{0,2}[0-9]{0,21}(\.[0-9]{0,18})?[a.]{0,2}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		a, b := []byte(key.Draw(t, "a")), []byte(key.Draw(t, "b"))
		aInteger, aFraction := splitDecimal(a)
		bInteger, bFraction := splitDecimal(b)
		want := cmp.Or(cmp.Compare(aInteger, bInteger), cmp.Compare(aFraction, bFraction), bytes.Compare(a, b))
		x, y := appendDecimal(nil, a), appendDecimal(nil, b)
		require.Equal(t, want, bytes.Compare(x, y))
		require.Equal(t, a, x[KeyPrefix(expr.Decimal):])
	})
}

func TestPrefixSize(t *testing.T) {
	require.Zero(t, KeyPrefix(expr.Lexical))
	require.Zero(t, KeyPrefix(expr.LexicalDesc))
	require.Equal(t, 16, KeyPrefix(expr.Decimal))
	require.Equal(t, 16, KeyPrefix(expr.DecimalDesc))
}

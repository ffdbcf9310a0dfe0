package db

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIncrementsAnswerLikeTheOriginal(t *testing.T) {
	seen := 0
	for _, c := range mustReadGolden(t, "http/05-rpc-increment.jsonl") {
		if strings.Contains(c.Name, "expired") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			records := map[string][]byte{}
			for _, s := range c.Steps {
				in, out := s.inputs(t), s.outputs(t)
				old, exists := records[in["key"]]
				var answer string
				switch s.procedure() {
				case "set":
					records[in["key"]] = []byte(in["value"])
					continue
				case "remove":
					delete(records, in["key"])
					continue
				case "get":
					require.Equal(t, exists, out["ERROR"] == "")
					require.Equal(t, out["value"], string(old))
					continue
				case "check":
					if exists {
						require.Equal(t, out["vsiz"], strconv.Itoa(len(old)))
					}
					continue
				case "increment":
					num, write, err := addInt(old, exists, integer(in["num"]), originInt(in["orig"]))
					if write {
						stored := encodeInt(num)
						records[in["key"]] = stored[:]
					}
					answer = answerOf(strconv.FormatInt(num, 10), err)
				case "increment_double":
					num, stored, write, err := addDouble(old, exists, float(in["num"]), originFloat(in["orig"]))
					if write {
						records[in["key"]] = stored
					}
					answer = answerOf(floatText(num), err)
				default:
					t.Skip("not about numbers")
				}
				if in["key"] == "" && in["num"] == "" || out["ERROR"] == "invalid parameters" {
					continue
				}
				seen++
				require.Equal(t, out["num"]+out["ERROR"], answer, "%v", in)
			}
		})
	}
	require.Greater(t, seen, 80)
}

func answerOf(num string, err error) string {
	if err != nil {
		return "DB: " + err.Error()
	}
	return num
}

func floatText(f float64) string {
	if math.IsInf(f, 0) {
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'f', 6, 64)), "+")
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

func originInt(s string) int64 {
	switch s {
	case "try":
		return origTry
	case "set":
		return origSet
	}
	return integer(s)
}

func originFloat(s string) float64 {
	switch s {
	case "try":
		return math.Inf(-1)
	case "set":
		return math.Inf(1)
	}
	return float(s)
}

// integer and float read numbers as reference section 6.1 says; good enough for the recordings.
func integer(s string) (n int64) {
	s = skipBlanks(s)
	digits := strings.TrimLeft(s, "+-")
	for i := 0; i < len(digits) && digits[i] >= '0' && digits[i] <= '9'; i++ {
		n = n*10 + int64(digits[i]-'0') // wraps
	}
	if strings.HasPrefix(s, "-") {
		return -n
	}
	return n
}

func float(s string) float64 {
	s = skipBlanks(s)
	for end := len(s); end > 0; end-- {
		if f, err := strconv.ParseFloat(s[:end], 64); err == nil {
			return f
		}
	}
	return 0
}

func TestAddInt(t *testing.T) {
	for _, c := range []struct {
		name      string
		old       string
		exists    bool
		num, orig int64
		sum       int64
		write     bool
		fails     bool
	}{
		{"sums wrap around", "7fffffffffffffff", true, 2, 0, math.MinInt64 + 1, true, false},
		{"the least number is stored and reported as an error", "7fffffffffffffff", true, 1, 0, math.MinInt64, true, true},
		{"reading the least number is an error", "8000000000000000", true, 0, 0, math.MinInt64, false, true},
		{"a value of another size is an error even to set", "00", true, 1, origSet, 0, false, true},
		{"an empty value is not a missing record", "", true, 1, 0, 0, false, true},
		{"zero creates a missing record", "", false, 0, 7, 7, true, false},
		{"zero does not touch a record", "0000000000000005", true, 0, 7, 5, false, false},
		{"zero sets", "0000000000000005", true, 0, origSet, 0, true, false},
		{"a missing record is not tried", "", false, 1, origTry, 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, err := hex.DecodeString(c.old)
			require.NoError(t, err)
			sum, write, err := addInt(old, c.exists, c.num, c.orig)
			require.Equal(t, c.write, write)
			require.Equal(t, c.fails, err != nil)
			require.Equal(t, c.sum, sum)
		})
	}
}

func TestAddDouble(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	none := decimal{}
	for _, c := range []struct {
		name      string
		old       decimal
		num, orig float64
		want      decimal
		sum       float64
	}{
		{"what 53 bits would round is cut", none, 0.3, 0, decimal{0, 299999999999999}, 0.3 - 1e-15},
		{"negative fractions stay as they are", decimal{0, -75e13}, -0.75, 0, decimal{0, -15e14}, -1.5},
		{"positive fractions are carried", decimal{0, 75e13}, 0.75, 0, decimal{1, 5e14}, 1.5},
		{"a fraction that would not fit is carried", decimal{0, math.MinInt64 + 1}, -0.75, 0,
			decimal{-9223, -1122036854775807}, -9224.122036854775},
		{"infinity absorbs", infinite(1), math.Inf(-1), 0, infinite(1), inf},
		{"infinity with a fraction is infinity", decimal{math.MaxInt64, 5}, 1, 0, decimal{math.MaxInt64, 5}, inf},
		{"an infinity can be overwritten by its neighbour", decimal{1, 0}, -inf, 0, infinite(-1), -inf},
		{"beyond 64 bits is infinity", decimal{1, 0}, 1e30, 0, infinite(1), inf},
		{"beyond -64 bits is infinity", decimal{1, 0}, -1e30, 0, infinite(-1), -inf},
		{"a sum beyond 64 bits is infinity", decimal{1 << 62, 0}, 1 << 62, 0, infinite(1), inf},
		{"carrying can make infinity", decimal{math.MaxInt64 - 1, 75e13}, 0.75, 0, infinite(1), inf},
		{"negative zero reads", decimal{2, 0}, math.Copysign(0, -1), 0, decimal{2, 0}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			sum, stored, write, err := addDouble(c.old.encode(), true, c.num, c.orig)
			require.NoError(t, err)
			require.InDelta(t, c.sum, sum, 1e-11)
			if !write {
				stored = c.old.encode()
			}
			require.Equal(t, c.want, decodeDecimal(stored))
		})
	}

	_, stored, write, err := addDouble(decimal{1, 0}.encode(), true, nan, 0)
	require.ErrorIs(t, err, ErrLogic)
	require.True(t, write)
	require.Equal(t, decimal{math.MinInt64, math.MinInt64}, decodeDecimal(stored))

	_, _, write, err = addDouble(stored, true, 1, 0)
	require.ErrorIs(t, err, ErrLogic, "NaN absorbs")
	require.False(t, write)
}

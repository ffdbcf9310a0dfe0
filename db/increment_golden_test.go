package db

import (
	"gotycoon/db/record"
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
					num, write, err := record.AddInt(old, exists, integer(in["num"]), originInt(in["orig"]))
					if write {
						stored := record.EncodeInt(num)
						records[in["key"]] = stored[:]
					}
					answer = answerOf(strconv.FormatInt(num, 10), err)
				case "increment_double":
					num, stored, write, err := record.AddDouble(old, exists, float(in["num"]), originFloat(in["orig"]))
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
		return record.OrigTry
	case "set":
		return math.MaxInt64
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
	s = withoutBlanks(s)
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
	s = withoutBlanks(s)
	for end := len(s); end > 0; end-- {
		if f, err := strconv.ParseFloat(s[:end], 64); err == nil {
			return f
		}
	}
	return 0
}

// withoutBlanks cuts leading bytes 0x01 to 0x20.
func withoutBlanks(s string) string {
	for s != "" && s[0] >= 0x01 && s[0] <= 0x20 {
		s = s[1:]
	}
	return s
}

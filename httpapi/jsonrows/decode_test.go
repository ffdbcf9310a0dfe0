package jsonrows_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/tsv"
	"gotycoon/httpapi/jsonrows"
)

func pairs(r *tsv.Rows) (all [][2]string) {
	for row := range r.All() {
		all = append(all, [2]string{string(row.Name), string(row.Value)})
	}
	return all
}

// decode decodes a copy of body. Its only flag is atomic.
func decode(body string) (*tsv.Rows, error) {
	rows := new(tsv.Rows)
	err := jsonrows.Decode(rows, []byte(body), func(name []byte) bool { return string(name) == "atomic" })
	return rows, err
}

func TestDecode(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       [][2]string
	}{
		{"nothing", ` { } `, nil},
		{"strings", `{"key":"tea","value":""}`, [][2]string{{"key", "tea"}, {"value", ""}}},
		{"escapes", `{"a\u0062":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000é"}`, [][2]string{{"ab", "\"\\/\b\f\n\r\té😀\x00é"}}},
		{"numbers are as they are written", `{"a":1,"b":-0.50,"c":9223372036854775807,"d":1.0}`,
			[][2]string{{"a", "1"}, {"b", "-0.50"}, {"c", "9223372036854775807"}, {"d", "1.0"}}},
		{"exponents are written out", `{"a":1e3,"b":-25E-1}`, [][2]string{{"a", "1000"}, {"b", "-2.5"}}},
		{"the longest exponents", `{"a":1e31,"b":-1.5e-28}`,
			[][2]string{{"a", "1" + strings.Repeat("0", 31)}, {"b", "-0." + strings.Repeat("0", 27) + "15"}}},
		{"words", `{"a":true,"b":false,"c":null}`, [][2]string{{"a", "true"}, {"b", "false"}}},
		{"a flag is there or not", `{"atomic":true}`, [][2]string{{"atomic", "true"}}},
		{"a flag that is not there", `{"atomic":false}`, nil},
		{"bytes", `{"value":{"base64":"AP8="},"b":{ "base64" : "AP8" },"c":{"base64":""}}`,
			[][2]string{{"value", "\x00\xff"}, {"b", "\x00\xff"}, {"c", ""}}},
		{"escapes in Base64", `{"value":{"base64":"AP8\u003d"}}`, [][2]string{{"value", "\x00\xff"}}},
		{"an object of records", `{"records":{"a":"1","":2,"\n":{"base64":"/w=="},"base64":"x"},"x":"y"}`,
			[][2]string{{"_a", "1"}, {"_", "2"}, {"_\n", "\xff"}, {"_base64", "x"}, {"x", "y"}}},
		{"a list of records", `{"records":[{"key":"a","value":"1"}, {"value":true,"key":{"base64":"/w=="}},{"key":"","value":""}]}`,
			[][2]string{{"_a", "1"}, {"_\xff", "true"}, {"_", ""}}},
		{"keys", `{"keys":["a",{"base64":"/w=="},""]}`, [][2]string{{"_a", ""}, {"_\xff", ""}, {"_", ""}}},
		{"no records", `{"records":[],"keys":[]}`, nil},
		{"keys as a number, for checksum", `{"keys":5}`, [][2]string{{"keys", "5"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows, err := decode(tc.body)
			require.NoError(t, err)
			require.Equal(t, tc.want, pairs(rows))
		})
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	for body, want := range map[string]string{
		"":                                "line 1, column 1: the body ends too early",
		`[]`:                              "line 1, column 1: expected {",
		`{"a":1} x`:                       "column 9, in \"a\": nothing may follow the object",
		"{\"a\":1,\n \"b\":x}":            "line 2, column 6, in \"b\": expected a string, a number",
		"{\"a\":\"\\n\\n\",\n \"b\":[]}":  "line 2, column 6, in \"b\": no list is expected here",
		`{"a":"b`:                         "in \"a\": the body ends too early",
		`{"a":"b\`:                        "the body ends too early",
		`{"a":"\u12`:                      "four hexadecimal digits",
		`{"a":"\x"}`:                      "an unknown escape",
		`{"a":"\ud800"}`:                  "half of a character",
		`{"a":"\ud800\u0041"}`:            "half of a character",
		`{"a":"\udc00"}`:                  "half of a character",
		"{\"a\":\"\t\"}":                  "a control byte in a string must be escaped",
		"{\"a\":\"\xff\"}":                `the string is no UTF-8: give bytes as {"base64"`,
		`{a:1}`:                           "the name of a member, in double quotes",
		`{"a":1,}`:                        "the name of a member, in double quotes",
		`{"a":1 "b":2}`:                   "expected }",
		`{"a":01}`:                        "no number",
		`{"a":1.}`:                        "no number",
		`{"a":-}`:                         "no number",
		`{"a":1e999}`:                     "too large",
		`{"a":1e32}`:                      "more than 32 digits when its exponent is written out: give it as a string",
		`{"a":1e308}`:                     "column 6, in \"a\": the number has more than 32 digits",
		`{"records":{"a":-1e-300}}`:       "give it as a string",
		`{"a":truex}`:                     "expected }",
		`{"a":{"b":1}}`:                   `the only object that is a value is {"base64"`,
		`{"a":{}}`:                        `the only object that is a value is {"base64"`,
		`{"a":{"base64":1}}`:              "base64 must be a string",
		`{"a":{"base64":"*"}}`:            "no Base64",
		`{"a":{"base64":"","base64":""}}`: "the only object that is a value",
		`{"a":1,"a":2}`:                   "the member is there twice",
		`{"_a":1}`:                        `give records as "records" or "keys"`,
		`{"atomic":1}`:                    "must be true or false",
		`{"records":{"a":null}}`:          "null is no value of a record",
		`{"records":{"a":{"b":1}}}`:       "the only object that is a value",
		`{"records":[{"key":"a"}]}`:       "a record is {",
		`{"records":[{"value":"a"}]}`:     "a record is {",
		`{"records":[{"key":"a","value":"b","xt":1}]}`: "a record is {",
		`{"records":[{"key":"a","value":null}]}`:       "null is no value",
		`{"records":["a"]}`:                            "expected {",
		`{"keys":[1]}`:                                 "a key is a string",
		`{"keys":["a"`:                                 "the body ends too early",
	} {
		_, err := decode(body)
		require.ErrorContains(t, err, "the JSON body is wrong at line", body)
		require.ErrorContains(t, err, want, body)
	}
}

// However deep a body goes, the decoder has given up before.
func TestDecodeDeep(t *testing.T) {
	for _, open := range []string{`[`, `{"a":`, `{"records":[`, `{"base64":`} {
		_, err := decode(strings.Repeat(open, 1<<20))
		require.Error(t, err)
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = `"` + strings.Repeat("x", i+1) + `":1`
	}
	_, err := decode("{" + strings.Join(many, ",") + "}")
	require.ErrorContains(t, err, "more than 256 members")
}

// What this decoder accepts, encoding/json accepts too, and the strings are the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"key":"a\u00e9\ud83d\ude00","value":{"base64":"AP8="},"records":{"a":1e2},"keys":["b"]}`))
	f.Add([]byte(`{"records":[{"key":"a","value":"1"}],"x":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var rows tsv.Rows
		if jsonrows.Decode(&rows, bytes.Clone(body), func([]byte) bool { return false }) != nil {
			return
		}
		var want map[string]any
		require.NoError(t, json.Unmarshal(body, &want), "%q", body)
		for name, value := range want {
			if text, ok := value.(string); ok {
				got, _ := rows.Get(name)
				require.Equal(t, text, string(got), "%q", body)
			}
		}
	})
}

// Memory of a table, which is refused beyond a bound.
type purse struct{ held, most int }

var errEmpty = errors.New("the purse is empty")

func (p *purse) Hold(n int) error {
	if p.held+n > p.most {
		return errEmpty
	}
	p.held += n
	return nil
}

func (p *purse) LetGo(n int) { p.held -= n }

// What takes memory beside the body is asked for, and nothing that a body says makes the decoder
// take much more than the body has.
func TestDecodeTakesLittle(t *testing.T) {
	p := &purse{most: 4 << 20}
	body := `{"records":{"":0` + strings.Repeat(`,"":1e9`, 20_000) + `}}`
	rows := &tsv.Rows{Memory: p}
	require.NoError(t, jsonrows.Decode(rows, []byte(body), func([]byte) bool { return false }))
	require.Greater(t, p.held, 20_000*(32+48))
	p.most = p.held - 1
	p.held = 0
	rows = &tsv.Rows{Memory: p}
	_ = jsonrows.Decode(rows, []byte(body), func([]byte) bool { return false })
	require.ErrorIs(t, rows.Err(), errEmpty)

	for _, body := range []string{
		`{"a":` + strings.Repeat("1", 1<<20) + `e1}`,
		`{"` + strings.Repeat("\u0080", 1<<20) + `":x}`,
		`{"records":{"a":0` + strings.Repeat(`,"a":1e308`, 1<<17) + `}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decode(body)
		runtime.ReadMemStats(&after)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1000)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(body)+64<<10), "%.20s: the copy, and a little", body)
	}
}

package jsonrows_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/client/wire/tsv"
	"gotycoon/httpapi/jsonrows"
)

func numbers(names ...string) func([]byte) bool {
	return func(name []byte) bool {
		for _, n := range names {
			if n == string(name) {
				return true
			}
		}
		return false
	}
}

func table(cells ...string) *tsv.Rows {
	r := new(tsv.Rows)
	for i := 0; i < len(cells); i += 2 {
		r.Add([]byte(cells[i]), []byte(cells[i+1]))
	}
	return r
}

// encode writes rows in pieces and returns all of them.
func encode(rows *tsv.Rows, f jsonrows.Form) string {
	var all []byte
	w := jsonrows.Writer{Full: func(buf []byte) ([]byte, error) {
		all = append(all, buf...)
		return buf[:0], nil
	}}
	jsonrows.Encode(&w, rows, f)
	return string(append(all, w.Buf...))
}

func TestEncode(t *testing.T) {
	none := jsonrows.Form{Number: numbers()}
	for _, tc := range []struct {
		name string
		rows *tsv.Rows
		form jsonrows.Form
		want string
	}{
		{"nothing", table(), none, `{}`},
		{"rows in the order of their names", table("b", "2", "a", "1"), none, `{"a":"1","b":"2"}`},
		{"a number, and infinity", table("n", "-5", "x", "inf"), jsonrows.Form{Number: numbers("n", "x")}, `{"n":-5,"x":"inf"}`},
		{"bytes", table("v", "\x00\xff"), none, `{"v":{"base64":"AP8="}}`},
		{"text", table("v", "é\"\\\n\r\t\x00\x7f"), none, `{"v":"é\"\\\n\r\t\u0000\u007f"}`},
		{"records come last", table("_b", "2", "_a", "1", "num", "2"), jsonrows.Form{Number: numbers("num"), List: jsonrows.Records},
			`{"num":2,"records":[{"key":"a","value":"1"},{"key":"b","value":"2"}]}`},
		{"no records", table("num", "0"), jsonrows.Form{Number: numbers("num"), List: jsonrows.Records}, `{"num":0,"records":[]}`},
		{"keys in their order", table("_c", "10", "_a", "9", "_\xff", "0", "num", "3"), jsonrows.Form{Number: numbers("num"), List: jsonrows.Ranked},
			`{"num":3,"keys":[{"base64":"/w=="},"a","c"]}`},
		{"records that nobody expects", table("_a", "1"), none, `{"records":[{"key":"a","value":"1"}]}`},
		{"a failure", table("ERROR", "no record", "SIGNALED", "0"),
			jsonrows.Form{Number: numbers("SIGNALED"), List: jsonrows.Records, Fault: &jsonrows.Fault{Status: 450, Code: 7}},
			`{"error":"no record","SIGNALED":0,"code":7,"status":450}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want+"\n", encode(tc.rows, tc.form))
		})
	}
}

// What is written is read again as it was, whatever the bytes, and in pieces too.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := new(tsv.Rows)
		for range rapid.IntRange(0, 8).Draw(t, "rows") {
			name := "_" + rapid.String().Draw(t, "name")
			rows.Add([]byte(name), rapid.SliceOf(rapid.Byte()).Draw(t, "value"))
		}
		rows.Sort()
		text := encode(rows, jsonrows.Form{Number: numbers(), List: jsonrows.Records})
		require.True(t, json.Valid([]byte(text)))
		back, err := decode(text)
		require.NoError(t, err)
		require.Equal(t, pairs(rows), pairs(back))
	})
	for _, unit := range []string{"é", "a😀", "\xff", "\n"} {
		long := strings.Repeat(unit, 100_000)
		back, err := decode(encode(table("_k", long), jsonrows.Form{Number: numbers()}))
		require.NoError(t, err)
		value, _ := back.Get("_k")
		require.Equal(t, long, string(value))
	}
}

package remote

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"gotycoon/client"
)

// object is a record for programs. Its expiration time is there only where it has one.
func (c *call) object(r client.Record, value, expiry bool) map[string]any {
	m := map[string]any{}
	c.column(m, "key", []byte(r.Key))
	if value {
		c.column(m, "value", r.Value)
	}
	if expiry && !r.Expires.IsZero() {
		m["xt"] = r.Expires.Unix()
	}
	return m
}

// column adds bytes to an object: as text where they are text, since JSON knows nothing else.
func (c *call) column(m map[string]any, name string, b []byte) {
	switch {
	case c.hexOut:
		m[name] = fmt.Sprintf("%X", b)
	case utf8.Valid(b):
		m[name] = string(b)
	default:
		m[name+"_base64"] = base64.StdEncoding.EncodeToString(b)
	}
}

// status is a report for programs: what looks like a number is one.
func status(rows client.Rows) map[string]any {
	m := make(map[string]any, len(rows))
	for name, value := range rows {
		m[name] = string(value)
		if isNumber(value) {
			m[name] = json.Number(value)
		}
	}
	return m
}

func isNumber(text []byte) bool {
	first := byte(0)
	if len(text) > 0 {
		first = text[0]
	}
	return (first == '-' || '0' <= first && first <= '9') && json.Valid(text)
}

// printJSON writes one line of JSON.
func (c *call) printJSON(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.out.Write(append(line, '\n'))
	return err
}

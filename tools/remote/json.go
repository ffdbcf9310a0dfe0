package remote

import (
	"gotycoon/client"
	"gotycoon/tools/show"
)

// object is a record for programs. Its expiration time is there only where it has one.
func (c *call) object(r client.Record, value, expiry bool) show.Object {
	o := show.Object{}
	o.Bytes("key", []byte(r.Key), c.hexOut)
	if value {
		o.Bytes("value", r.Value, c.hexOut)
	}
	if expiry && !r.Expires.IsZero() {
		o["xt"] = r.Expires.Unix()
	}
	return o
}

// status is a report for programs: what looks like a number is one.
func status(rows client.Rows) show.Object {
	o := make(show.Object, len(rows))
	for name, value := range rows {
		o.Text(name, string(value))
	}
	return o
}

// printJSON writes one line of JSON.
func (c *call) printJSON(v any) error { return show.JSON(c.out, v) }

package httpapi

import (
	"fmt"

	"gotycoon/httpapi/jsonrows"
	"gotycoon/httpapi/message"
)

// What a person or a program gets that looks around: GET / and /openapi.json. Both are keys of
// records too, and a record is always answered first. Where there is none, GET / stays 404, as in
// the original, and has a page in its body.

const welcomeText = `gotycoon: a key-value server with the protocols of Kyoto Tycoon.

There is no record with an empty key, which is what this path asks for. There are:

/rpc/help        all procedures in a few words, each with /rpc/help?name=set;
                 the whole reference with the header Accept: text/plain
/openapi.json    the same for programs
/KEY             records, by GET, PUT and DELETE

curl --json '{"key":"tea","value":"green"}' http://HOST:PORT/rpc/set

The console %s.
`

const welcomePage = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>gotycoon</title></head><body>
<h1>gotycoon</h1>
<p>A key-value server with the protocols of Kyoto Tycoon. There is no record with an empty key, which is what this path asks for. There are:</p>
<ul>
<li><a href="/rpc/help">/rpc/help</a>: the reference of all procedures</li>
<li><a href="/openapi.json">/openapi.json</a>: the same for programs</li>
<li><code>/KEY</code>: records, by GET, PUT and DELETE</li>
</ul>
<p>The console %s.</p>
</body></html>
`

// welcome answers a GET or HEAD that has found no record, if its target is one of ours. It reports
// whether it has.
func (s *Session) welcome() (status int, ok bool) {
	switch string(s.req.Target()) {
	case "/":
		if s.req.Method != message.GET {
			return 0, false
		}
	case openAPIPath:
		s.reply.text(statusOK, s.req.KeepAlive, jsonrows.TypeJSON, s.table.openAPI())
		return statusOK, true
	default:
		return 0, false
	}
	console := "is off: start the server with -admin ADDRESS"
	if s.opts.Console != "" {
		console = "is on its admin listener, " + s.opts.Console
	}
	kind, text := plainText, welcomeText
	if names(s.req.Accept(), typeHTML) {
		kind, text = typeHTML+"; charset=utf-8", welcomePage
	}
	text = fmt.Sprintf(text, console)
	s.reply.head(statusNotFound, s.req.KeepAlive, len(text))
	s.reply.header("X-Kt-Error: ", "DB: 7: no record: no record")
	s.reply.header("Content-Type: ", kind)
	s.reply.endWith(asOwnPage)
	s.conn.Out = append(s.conn.Out, text...)
	return statusNotFound, true
}

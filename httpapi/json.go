package httpapi

import (
	"bytes"
	"fmt"
	"strconv"

	"gotycoon/client/wire/tsv"
	"gotycoon/httpapi/jsonrows"
	"gotycoon/httpapi/message"
)

// JSON at the edge.
//
// A body of type application/json is read as JSON, and answered in JSON unless the client accepts
// TSV by name. Otherwise the reply is JSON when Accept names application/json and neither TSV nor
// */*: libraries that name every type they have heard of, and */* at the end, have always been
// answered in TSV. Package jsonrows has the form; the procedures know nothing of it.

// Media types beside those of package tsv.
const (
	plainText  = "text/plain"
	typeAny    = "*/*"
	typeEvents = "text/event-stream"
	typeLines  = "application/x-ndjson"
	typeHTML   = "text/html"
)

// sendsJSON reports whether the body of a request is JSON.
func sendsJSON(r *message.Request) bool {
	kind := r.ContentType()
	if len(kind) < len(jsonrows.TypeJSON) || kind[len("application/")]|0x20 != 'j' { // nearly always
		return false
	}
	kind, _, _ = bytes.Cut(kind, []byte(";"))
	return message.EqualFold(bytes.TrimSpace(kind), jsonrows.TypeJSON) && r.Announced()
}

// wantsJSON reports whether a request is to be answered in JSON. Streams of JSON count.
func wantsJSON(r *message.Request) bool {
	accept := r.Accept()
	switch {
	case len(accept) == 0:
		return sendsJSON(r)
	case names(accept, tsv.TypeTSV):
		return false
	case sendsJSON(r):
		return true
	case names(accept, typeAny):
		return false
	}
	return names(accept, jsonrows.TypeJSON) || names(accept, typeEvents) || names(accept, typeLines)
}

// wantsText reports whether a request for the reference is to be answered with a text. A browser
// would offer to save a table.
func wantsText(r *message.Request) bool {
	accept := r.Accept()
	return names(accept, typeHTML) || names(accept, plainText) && !names(accept, typeAny) && !names(accept, tsv.TypeTSV)
}

// names reports whether an Accept header names a media type.
func names(accept []byte, mediaType string) bool {
	for len(accept) > 0 {
		var one []byte
		one, accept, _ = bytes.Cut(accept, []byte(","))
		one, _, _ = bytes.Cut(one, []byte(";"))
		if message.EqualFold(bytes.TrimSpace(one), mediaType) {
			return true
		}
	}
	return false
}

// flag reports whether a parameter of a procedure, nil for an unknown one, counts if it is present.
func (p *procedure) flag(name []byte) bool {
	r, ok := rowOf(commonRows, name)
	if !ok && p != nil {
		r, ok = rowOf(p.in, name)
	}
	return ok && r.kind.of() == asFlag
}

// longestNumber is how many bytes a parameter that is a number may have. All digits of the largest
// double are 309.
const longestNumber = 1 << 10

// checkNumbers returns an error if a parameter is no number that must be one. In TSV such a text is
// read as the original reads it, as 0 for example, and a record with the expiration time 0 is gone
// at once. Whoever sends JSON has no habits to keep.
func (p *procedure) checkNumbers(in *tsv.Rows) error {
	if p == nil {
		return nil
	}
	for _, r := range p.in {
		if kind := r.kind.of(); kind != asInt && kind != asNumber {
			continue
		}
		text, ok := in.Get(r.name)
		if !ok {
			continue
		}
		if len(text) > longestNumber { // neither copied nor quoted
			return fmt.Errorf("%w: %s must be a number, and has %d bytes", errInvalidParameters, r.name, len(text))
		}
		if _, err := strconv.ParseFloat(string(text), 64); err != nil {
			return fmt.Errorf("%w: %s must be a number, and is %q", errInvalidParameters, r.name, text)
		}
	}
	return nil
}

// form returns how the output of a procedure, nil for an unknown one, is written in JSON.
func (p *procedure) form() jsonrows.Form {
	f := jsonrows.Form{Number: p.number}
	if p == nil {
		return f
	}
	if r, ok := records(p.out); ok {
		f.List = jsonrows.Records
		if r.kind.of() == asKeys {
			f.List = jsonrows.Ranked
		}
	}
	return f
}

// number reports whether a row of the output is a number.
func (p *procedure) number(name []byte) bool {
	r, ok := rowOf(commonOut, name)
	if !ok && p != nil {
		r, ok = rowOf(p.out, name)
	}
	return ok && (r.kind.of() == asInt || r.kind.of() == asNumber)
}

// errorJSON is the reply of a call that has failed before it had an output.
func errorJSON(text string, status int) string {
	w := jsonrows.Writer{Full: keepAll}
	w.Raw(`{"error":`)
	w.Text([]byte(text))
	w.Raw(`,"status":` + strconv.Itoa(status) + "}\n")
	return string(w.Buf)
}

// keepAll is for a Writer of a short text.
func keepAll(buf []byte) ([]byte, error) { return buf, nil }

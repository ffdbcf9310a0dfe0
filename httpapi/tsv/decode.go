package tsv

import "bytes"

// Decode adds the table in body to dst. contentType is the header of that name: it says whether body is a table,
// a form or something else, which adds nothing, and how the columns are encoded. An encoding applies to all rows of
// dst, those from a query string too: the original does so.
//
// Body is decoded in place and must not be changed while dst is used. Where there is no memory for all rows dst.Err says so.
func Decode[T string | []byte](dst *Rows, body []byte, contentType T) {
	switch {
	case hasPrefixFold(contentType, TypeTSV):
		dst.parse(body)
		if e := encodingOf(contentType, len(TypeTSV)); e != Raw {
			dst.decodeColumns(e)
		}
	case hasPrefixFold(contentType, TypeForm):
		DecodeForm(dst, untilNUL(body))
	}
}

// parse adds the rows of a table as they are. Rows without a tab are ignored.
func (r *Rows) parse(body []byte) {
	for len(body) > 0 && r.err == nil {
		line := body
		if end := bytes.IndexByte(body, '\n'); end >= 0 {
			line, body = body[:end], body[end+1:]
			if end > 0 && line[end-1] == '\r' {
				line = line[:end-1]
			}
		} else {
			body = nil
		}
		if tab := bytes.IndexByte(line, '\t'); tab >= 0 {
			r.Add(line[:tab], line[tab+1:])
		}
	}
}

// decodeColumns decodes every column. Where two encoded names mean the same name the one that sorts last wins,
// so the rows are brought into that order first.
func (r *Rows) decodeColumns(e Encoding) {
	if !r.increasing() {
		r.order()
	}
	for part := range r.parts() {
		for i := range part {
			row := &part[i]
			row.Name = DecodeColumn(row.Name, e)
			row.Value = DecodeColumn(row.Value, e)
		}
	}
}

// DecodeForm adds the fields of a form or a query string to dst and decodes them in place. Fields are separated by
// '&' or ';'; one without '=' has an empty value.
func DecodeForm(dst *Rows, text []byte) {
	for len(text) > 0 && dst.err == nil {
		field := text
		if end := bytes.IndexAny(text, "&;"); end >= 0 {
			field, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		field = trimLeft(field)
		if len(field) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(field, []byte("="))
		dst.Add(DecodeURL(name), DecodeURL(value))
	}
}

// trimLeft removes leading blanks and control bytes.
func trimLeft(s []byte) []byte {
	for len(s) > 0 && s[0] > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	return s
}

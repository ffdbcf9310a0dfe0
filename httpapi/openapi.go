package httpapi

import (
	"strconv"
	"strings"

	"gotycoon/httpapi/jsonrows"
)

// The OpenAPI document: the procedures with their JSON, and the verbs for single records. It is
// made from the table of procedures, for programs that write clients.

// openAPIPath is where a server has the document, unless there is a record of this key.
const openAPIPath = "/openapi.json"

type object = map[string]any

// openAPI returns the document.
func (t *table) openAPI() string {
	paths := object{"/{key}": recordPath()}
	for i := range t.rows {
		paths[rpcPrefix+t.rows[i].name] = object{"post": t.rows[i].operation()}
	}
	return jsonText(object{
		"openapi":           "3.1.0",
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": object{
			"title":   "gotycoon",
			"version": "1",
			"summary": "A key-value server with the protocols of Kyoto Tycoon.",
			"description": "Every procedure also takes its parameters as a query, a form or tab-separated values, by GET too, " +
				"and answers in tab-separated values where the client does not ask for JSON.",
			"license": object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []object{{"url": "/"}},
		"security": []object{{}, {"password": []string{}}, {"token": []string{}}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{
				"password": object{"type": "http", "scheme": "basic"},
				"token":    object{"type": "http", "scheme": "bearer"},
			},
			"schemas":   schemas(),
			"responses": failures(),
		},
	})
}

// schemas are what the procedures have in common.
func schemas() object {
	return object{
		"Bytes": object{
			"description": "A string where the bytes are UTF-8, else Base64.",
			"oneOf": []object{
				{"type": "string"},
				{"type": "object", "required": []string{"base64"}, "additionalProperties": false,
					"properties": object{"base64": object{"type": "string", "contentEncoding": "base64"}}},
			},
		},
		"Value": object{
			"description": "What a record is to hold: bytes, or the text of a number or of a word.",
			"anyOf":       []object{refer("Bytes"), {"type": []string{"number", "boolean"}}},
		},
		"Common": object{"type": "object", "description": "Parameters of all procedures.", "properties": properties(commonRows[2:])},
		"Error": object{
			"type": "object", "required": []string{"error", "status"},
			"properties": object{
				"error":  object{"type": "string"},
				"status": object{"type": "integer", "description": "the same as that of HTTP"},
				"code":   object{"type": "integer", "description": "of the database, where it has refused the call"},
			},
		},
	}
}

func refer(schema string) object { return object{"$ref": "#/components/schemas/" + schema} }

// operation describes a procedure.
func (p *procedure) operation() object {
	about := p.in
	for _, common := range commonRows[:2] {
		if common.name == "DB" && p.uses == usesDB || common.name == "CUR" && p.uses == usesCursor {
			if p.uses == usesCursor {
				common.kind |= must
			}
			about = append([]row{common}, about...)
		}
	}
	responses := object{}
	for _, o := range p.outcomes() {
		r := failure(o)
		switch {
		case o.status == statusOK:
			r = object{"description": o.when, "content": p.success()}
		case o.common:
			r = object{"$ref": "#/components/responses/" + strconv.Itoa(o.status)}
		}
		responses[strconv.Itoa(o.status)] = r
	}
	return object{
		"operationId": p.name,
		"tags":        []string{p.family()},
		"summary":     strings.ToUpper(p.help[:1]) + p.help[1:],
		"description": "Needs " + p.need.String() + ".",
		"requestBody": object{"required": len(required(about)) > 0,
			"content": content(jsonrows.TypeJSON, object{"allOf": []object{refer("Common"), schemaOf(about, true)}})},
		"responses": responses,
	}
}

// failure describes the reply of a call that has failed.
func failure(o outcome) object {
	return object{"description": o.when, "content": content(jsonrows.TypeJSON, refer("Error"))}
}

// failures are those that many procedures have.
func failures() object {
	all := object{}
	for _, o := range commonOutcomes {
		if o.status != statusOK {
			all[strconv.Itoa(o.status)] = failure(o)
		}
	}
	return all
}

// success describes the reply of a procedure that has done what it should.
func (p *procedure) success() object {
	if p.name == "watch" {
		all := content(typeLines, schemaOf(p.out, false))
		all[typeEvents] = object{"schema": object{"type": "string"}}
		return all
	}
	return content(jsonrows.TypeJSON, schemaOf(append(p.out[:len(p.out):len(p.out)], commonOut[:]...), false))
}

func content(kind string, schema object) object { return object{kind: object{"schema": schema}} }

// family is what a procedure is about, for the headings of pages that are made of the document.
func (p *procedure) family() string {
	switch {
	case p.uses == usesCursor || p.name == "cur_delete":
		return "cursors"
	case p.need.about == aboutKey:
		return "records"
	case p.need.about == aboutKeys:
		return "bulks"
	case p.uses == usesDB:
		return "databases"
	}
	return "server"
}

// schemaOf returns the schema of an object with these rows.
func schemaOf(rows []row, input bool) object {
	s := object{"type": "object", "properties": properties(rows)}
	if names := required(rows); len(names) > 0 {
		s["required"] = names
	}
	if r, ok := records(rows); ok {
		name, schema := "records", recordsSchema(input)
		if r.kind.of() == asKeys {
			name, schema = "keys", object{"type": "array", "items": refer("Bytes")}
		}
		schema["description"] = r.help
		s["properties"].(object)[name] = schema
	}
	if rows := s["properties"].(object); len(rows) == 0 {
		delete(s, "properties")
	}
	return s
}

// recordsSchema is the schema of records; an input may give them as an object too.
func recordsSchema(input bool) object {
	value := "Bytes"
	if input {
		value = "Value"
	}
	list := object{"type": "array", "items": object{"type": "object", "required": []string{"key", "value"},
		"additionalProperties": false, "properties": object{"key": refer("Bytes"), "value": refer(value)}}}
	if !input {
		return list
	}
	return object{"oneOf": []object{{"type": "object", "additionalProperties": refer(value)}, list}}
}

// properties returns the schemas of rows with names of their own. Other rows stand for names that
// nobody knows before.
func properties(rows []row) object {
	all := object{}
	for _, r := range rows {
		if r.name[0] == '_' || r.general() {
			continue
		}
		s := object{"description": r.help}
		switch r.kind.of() {
		case asBytes:
			s["allOf"] = []object{refer("Bytes")}
			if r.name == "value" || r.name == "oval" || r.name == "nval" {
				s["allOf"] = []object{refer("Value")}
			}
		case asText:
			s["type"] = "string"
			if r.name == "DB" {
				s["type"] = []string{"string", "integer"}
			}
		case asFlag:
			s["type"] = "boolean"
		case asInt:
			s["type"] = "integer"
		case asNumber:
			s["type"] = []string{"number", "string"} // infinity is a string
		case asStamp:
			s["type"] = "string"
		}
		all[r.name] = s
	}
	return all
}

// general reports whether a row stands for others: NAME, PATH, NUMBER.
func (r row) general() bool { return r.name == "NAME" || r.name == "PATH" || r.name == "NUMBER" }

func required(rows []row) []string {
	var names []string
	for _, r := range rows {
		if r.kind&must != 0 {
			names = append(names, r.name)
		}
	}
	return names
}

// recordPath describes the verbs.
func recordPath() object {
	bytes := object{"application/octet-stream": object{}}
	missing := object{"description": "there is no such record; X-Kt-Error says so"}
	failed := object{"description": "the request is wrong, needs credentials or rights, or cannot be carried out now; X-Kt-Error says why"}
	header := func(name, help string) object {
		return object{"name": name, "in": "header", "description": help, "schema": object{"type": "string"}}
	}
	verb := func(id, summary string, responses object) object {
		responses["default"] = failed
		return object{"operationId": id, "tags": []string{"records"}, "summary": summary, "responses": responses}
	}
	found := object{"description": "the value; X-Kt-Xt says when the record expires, if it does", "content": bytes}
	put := verb("putRecord", "Store a record", object{"201": object{"description": "stored"},
		"450": object{"description": "the record is there (add), or is not (replace)"}})
	put["requestBody"] = object{"required": true, "content": bytes}
	put["parameters"] = []object{header("X-Kt-Mode", "set (default), add or replace"), header("X-Kt-Xt", "when the record expires: a date of HTTP, or seconds since 1970")}
	return object{
		"parameters": []object{{"name": "key", "in": "path", "required": true, "schema": object{"type": "string"},
			"description": "the key, percent-encoded, of database 0; /DB/KEY names another database"}},
		"get":    verb("getRecord", "Get the value of a record", object{"200": found, "404": missing}),
		"head":   verb("headRecord", "Ask whether there is a record", object{"200": object{"description": "there is"}, "404": missing}),
		"put":    put,
		"delete": verb("deleteRecord", "Remove a record", object{"204": object{"description": "removed"}, "404": missing}),
	}
}

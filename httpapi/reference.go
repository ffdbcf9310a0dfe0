package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"gotycoon/db/dberr"
)

// The reference of all procedures, made from their table: the page docs/procedures.md, and what
// /rpc/help answers as text and as JSON. The OpenAPI document is in openapi.go.

// outcome is a status that a procedure may answer, and when.
type outcome struct {
	status int
	when   string
	common bool // many procedures have it, and for the same reason
}

var (
	outcomeDone    = outcome{statusOK, "done", true}
	outcomeWrong   = outcome{statusBadRequest, "a parameter is missing or makes no sense, in JSON also if it is unknown, or there is no such database or cursor", true}
	outcomeUnknown = outcome{statusUnauthorized, "other credentials are needed", true}
	outcomeDenied  = outcome{statusForbidden, "the rules do not allow it", true}
	outcomeFailed  = outcome{statusInternal, "the server could not do it: the text says why", true}
	outcomeLater   = outcome{statusUnavailable, "not now: the text says why, and whether an update is stored", true}
)

// commonOutcomes are those that many procedures have.
var commonOutcomes = [...]outcome{outcomeDone, outcomeWrong, outcomeUnknown, outcomeDenied, outcomeFailed, outcomeLater}

// outcomes returns the statuses of a procedure.
func (p *procedure) outcomes() []outcome {
	all := []outcome{outcomeDone, outcomeWrong}
	if p.need.about != aboutNothing {
		all = append(all, outcomeUnknown, outcomeDenied)
	}
	if p.gone != "" {
		all = append(all, outcome{statusGone, p.gone, false})
	}
	if p.expect != dberr.Success {
		all = append(all, outcome{statusLogical, fmt.Sprintf("%v (code %d)", p.expect, p.expect), false})
	}
	all = append(all, outcomeFailed)
	if p.off != "" {
		all = append(all, outcome{statusNotImplemented, p.off, false})
	}
	return append(all, outcomeLater)
}

// right says in words what a client must be allowed to do.
func (n right) String() string {
	of := map[about]string{
		aboutKey: " of the key", aboutKeys: " of all keys", aboutPrefix: " of the keys with the prefix",
		aboutPart:     " of the keys with the prefix, without one of the whole database",
		aboutDatabase: " of the whole database", aboutFile: " of the whole database, with a command `admin` of the server",
		aboutCursor: " of the whole database", aboutServer: " of the whole server",
	}
	if n.about == aboutNothing {
		return "no right"
	}
	return fmt.Sprintf("`%s`%s", n.rights, of[n.about])
}

const pageOpening = `# Procedures

Every procedure that can be called under ` + "`/rpc/`" + `, with the rows of its input and output: [how to call one](protocols.md#procedures), also
[with JSON](protocols.md#json), where rows whose names begin with an underscore are ` + "`records`" + ` or ` + "`keys`" + `. A server explains
them too: ` + "`/rpc/help`" + ` lists the names, ` + "`/rpc/help?name=set`" + ` the input of one; with ` + "`Accept: text/plain`" + ` it answers with this page, and with
` + "`Accept: application/json`" + ` with all of it as JSON. For programs that write clients there is [openapi.json](openapi.json), which a server has too,
as ` + "`/openapi.json`" + `. "Ours" is what the original does not have. A parameter that counts "if present" counts with any value, also with
` + "`false`" + `; in JSON it is true or false. Rights are those of the [access file](security.md).

## What all procedures take and answer

`

// page returns the reference as Markdown.
func (t *table) page() string {
	var b strings.Builder
	b.WriteString(pageOpening)
	writeRows(&b, "input", commonRows)
	b.WriteByte('\n')
	writeRows(&b, "output", commonOut)
	b.WriteString("\n| status | |\n| --- | --- |\n")
	for _, o := range commonOutcomes {
		fmt.Fprintf(&b, "| %d | %s |\n", o.status, o.when)
	}
	b.WriteString("\n`DB` and `CUR` only where the procedure is about a database or a cursor. A call that fails has one row, `ERROR`, whose text begins " +
		"with `DB: CODE:` where the\ndatabase has refused it; in JSON `error`, `code` and `status`.\n\n")
	writeCodes(&b)
	for i := range t.rows {
		b.WriteString("\n#")
		t.rows[i].write(&b)
	}
	return b.String()
}

// write writes what there is to say about a procedure.
func (p *procedure) write(b *strings.Builder) {
	fmt.Fprintf(b, "# %s\n\n%s%s. Needs %s.", p.name, strings.ToUpper(p.help[:1]), p.help[1:], p.need)
	switch p.uses {
	case usesDB:
		b.WriteString(" Takes `DB`.")
	case usesCursor:
		b.WriteString(" Takes `CUR`.")
	}
	for _, o := range p.outcomes() {
		if !o.common {
			fmt.Fprintf(b, " Status %d: %s.", o.status, o.when)
		}
	}
	b.WriteByte('\n')
	for _, part := range []struct {
		title string
		rows  []row
	}{{"input", p.in}, {"output", p.out}} {
		if len(part.rows) > 0 {
			b.WriteByte('\n')
			writeRows(b, part.title, part.rows)
		}
	}
}

func writeRows(b *strings.Builder, title string, rows []row) {
	fmt.Fprintf(b, "| %s | | |\n| --- | --- | --- |\n", title)
	for _, r := range rows {
		kind := r.kind.String()
		if r.kind&must != 0 {
			kind += map[string]string{"input": ", required", "output": ", always"}[title]
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", r.name, kind, r.help)
	}
}

func writeCodes(b *strings.Builder) {
	b.WriteString("| code | |\n| --- | --- |\n")
	for c := dberr.Success + 1; c <= dberr.SystemError; c++ {
		fmt.Fprintf(b, "| %d | %s |\n", c, c)
	}
	fmt.Fprintf(b, "| %d | %s |\n", dberr.Miscellaneous, dberr.Miscellaneous)
}

// String names a kind for people.
func (k kind) String() string {
	return [...]string{asBytes: "bytes", asText: "text", asFlag: "flag", asInt: "integer", asNumber: "number", asStamp: "time stamp", asKeys: "keys"}[k.of()]
}

// described is a procedure in the JSON of /rpc/help.
type described struct {
	Name     string             `json:"name"`
	Help     string             `json:"help"`
	Needs    string             `json:"needs"`
	Database bool               `json:"takes_db"`
	Cursor   bool               `json:"takes_cur"`
	Input    []describedRow     `json:"input"`
	Output   []describedRow     `json:"output"`
	Statuses []describedOutcome `json:"statuses"`
}

type describedRow struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Always bool   `json:"always"`
	Help   string `json:"help"`
}

type describedOutcome struct {
	Status int    `json:"status"`
	When   string `json:"when"`
}

func (p *procedure) described() described {
	d := described{Name: p.name, Help: p.help, Needs: strings.ReplaceAll(p.need.String(), "`", ""),
		Database: p.uses == usesDB, Cursor: p.uses == usesCursor, Input: describedRows(p.in), Output: describedRows(p.out)}
	for _, o := range p.outcomes() {
		d.Statuses = append(d.Statuses, describedOutcome{o.status, o.when})
	}
	return d
}

func describedRows(rows []row) []describedRow {
	all := []describedRow{}
	for _, r := range rows {
		all = append(all, describedRow{r.name, r.kind.String(), r.kind&must != 0, r.help})
	}
	return all
}

// help returns what /rpc/help answers about a procedure, or with nil about all, as JSON or as text.
func (t *table) help(p *procedure, asJSON bool) string {
	switch {
	case p != nil && asJSON:
		return jsonText(p.described())
	case p != nil:
		var b strings.Builder
		p.write(&b)
		return b.String()
	case asJSON:
		var all struct {
			Input      []describedRow `json:"input"`
			Output     []describedRow `json:"output"`
			Procedures []described    `json:"procedures"`
		}
		all.Input, all.Output = describedRows(commonRows), describedRows(commonOut)
		for i := range t.rows {
			all.Procedures = append(all.Procedures, t.rows[i].described())
		}
		return jsonText(all)
	}
	return t.page()
}

// jsonText returns values of this package as JSON.
func jsonText(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error() // no such value has one
	}
	return string(text) + "\n"
}

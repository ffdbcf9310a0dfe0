package main

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// text is a file of a component that whoever gets a program must be shown.
type text struct {
	file     string   // within the component
	body     string   // without blanks at the ends of lines
	licences []string // their names in SPDX's list; none for a mere notice
}

// sentences tell licences apart, by the names in SPDX's list. One that is not here must be read
// before it is added: may a program under Apache-2.0 be shipped with it, and what must we do then?
var sentences = []struct{ name, has, lacks string }{
	{name: "Apache-2.0", has: "Apache License Version 2.0, January 2004"},
	{name: "BSD-2-Clause", has: "Redistributions in binary form must reproduce the above copyright", lacks: "used to endorse or promote products"},
	{name: "BSD-3-Clause", has: "used to endorse or promote products"},
	{name: "MIT", has: "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{name: "blessing", has: "SQLite Is Public Domain"},
}

// leftOut are files that look like licences and are none of what is linked.
var leftOut = map[string]bool{
	// The origin of the picture on the project's page.
	"modernc.org/memory/LICENSE-LOGO": true,
	// All of the module graph, tests and tools included. What is linked of it are components here:
	// libc, with the notices of musl in its own file, memory, mathutil and so on; and SQLite, in
	// LICENSE-SQLITE.
	"modernc.org/sqlite/LICENSE-3RD-PARTY.md": true,
	// Of modernc.org/sqlite/vec, which no program imports.
	"modernc.org/sqlite/LICENSE-SQLITE_VEC": true,
}

var (
	legalName = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying|notice|copyright)([-._].*)?$`)
	sourceExt = regexp.MustCompile(`\.(go|s|c|h|py|sh)$`)
	blanks    = regexp.MustCompile(`\s+`)
	lineEnds  = regexp.MustCompile(`[ \t\r\f]+\n`)
	claim     = regexp.MustCompile(`(?im)^[\s*#/|>-]*copyright (?:(?:\(c\)|©) *(.+)|(\d{4}.*))$`)
)

// isLegal reports whether a file says under which conditions its folder may be used.
func isLegal(e fs.DirEntry) bool {
	return e.Type().IsRegular() && legalName.MatchString(e.Name()) && !sourceExt.MatchString(e.Name())
}

// newText reads a file. Except in a mere notice, a licence must be found.
func newText(path, file, body string) (text, error) {
	body = strings.Trim(lineEnds.ReplaceAllString(body+"\n", "\n"), "\n") + "\n"
	t := text{file: file, body: body}
	words := blanks.ReplaceAllString(body, " ")
	for _, s := range sentences {
		if strings.Contains(words, s.has) && (s.lacks == "" || !strings.Contains(words, s.lacks)) {
			t.licences = append(t.licences, s.name)
		}
	}
	if len(t.licences) == 0 && !strings.Contains(strings.ToLower(file), "notice") {
		return text{}, fmt.Errorf("%s: %s: no licence that we know; read it, then add it to packaging/legal/licence.go or leave the module out", path, file)
	}
	return t, nil
}

// licences are the names of the licences of a component.
func (c component) licences() []string { return licences([]component{c}) }

// licences returns the names of all licences, each once, sorted.
func licences(all []component) []string {
	var names []string
	for _, c := range all {
		for _, t := range c.texts {
			names = append(names, t.licences...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// expression says in SPDX's language that all these licences hold.
func expression(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " AND ")
}

// claims returns the years and names of those who claim the copyright in the component's texts. The
// licence text of Apache has an example of such a claim, in brackets.
func (c component) claims() []string {
	var lines []string
	for _, t := range c.texts {
		for _, m := range claim.FindAllStringSubmatch(t.body, -1) {
			line := strings.TrimSpace(m[1] + m[2])
			if !strings.Contains(line, "[") && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) == 0 {
		lines = []string{"The authors of " + c.path}
	}
	return lines
}

package main

import (
	"fmt"
	"strings"
)

// commonTexts are licences that every Debian system has under this name.
const commonTexts = "/usr/share/common-licenses/"

// copyright returns the file of a Debian package that says under which conditions it may be used,
// in the form "Machine-readable debian/copyright file", version 1.0. The programs are linked
// statically, so the modules in them have paragraphs, as if their sources were folders of ours.
func copyright(all []component) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: gotycoon
Comment: The programs are linked statically. Beside the files of gotycoon they contain
 the modules below; a pattern of files is the path of a module and what is in it.

Files: *
Copyright: %s %s
License: %s
`, year, owner, licence)
	for _, c := range all {
		fmt.Fprintf(&b, "\nFiles: %s/*\nCopyright: %s\nLicense: %s\n", c.path, strings.Join(c.claims(), "\n           "),
			strings.Join(c.licences(), " and "))
		if body := own(c); body != "" {
			b.WriteString(folded(body))
		}
	}
	fmt.Fprintf(&b, "\nLicense: %s\n On Debian systems the text is in %[2]s%[1]s.\n", licence, commonTexts)
	return []byte(b.String())
}

// own returns the texts of a component, without licences that every Debian system has.
func own(c component) string {
	var bodies []string
	for _, t := range c.texts {
		if strings.Join(t.licences, "") != licence {
			bodies = append(bodies, t.body)
		}
	}
	return strings.Join(bodies, "\n")
}

// folded returns a text as the rest of a field: lines begin with a blank, and empty ones have a
// dot.
func folded(body string) string {
	lines := strings.Split(strings.TrimRight(body, "\n"), "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			line = "."
		}
		lines[i] = " " + strings.ReplaceAll(line, "\t", "    ")
	}
	return strings.Join(lines, "\n") + "\n"
}

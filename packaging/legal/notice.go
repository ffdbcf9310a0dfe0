package main

import (
	"fmt"
	"strings"
)

// notice returns the file NOTICE: ours, the modules with their licences, and the texts of the
// licences, each once.
func notice(all []component) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `gotycoon
Copyright %s %s

Licensed under the Apache License, Version 2.0; the text is in the file LICENSE.

The programs ktserver, ktremotemgr, kttimedmgr, ktutilmgr and ktreplsql contain
the following software, under licences of its own. Their texts are below.
"make notice" writes this file.

`, year, owner)
	for _, c := range all {
		fmt.Fprintf(&b, "  %s: %s\n", c.title(), expression(c.licences()))
	}
	for _, s := range shared(all) {
		rule := strings.Repeat("-", 80)
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s", rule, strings.Join(s.places, "\n"), rule, s.body)
	}
	return []byte(b.String())
}

// sharedText is a text that some components have in common.
type sharedText struct {
	places []string // whose it is, and in which file
	body   string
}

// shared returns the texts in the order in which they come first. Texts are the same when only
// their blanks differ.
func shared(all []component) []*sharedText {
	var texts []*sharedText
	known := map[string]*sharedText{}
	for _, c := range all {
		for _, t := range c.texts {
			words := strings.TrimSpace(blanks.ReplaceAllString(t.body, " "))
			s := known[words]
			if s == nil {
				s = &sharedText{body: t.body}
				known[words] = s
				texts = append(texts, s)
			}
			s.places = append(s.places, c.path+": "+t.file)
		}
	}
	return texts
}

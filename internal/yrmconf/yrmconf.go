// Package yrmconf reads configuration files of the form that yrmcds has.
//
//	# a comment
//	counter.enable = true
//	log.file       = "/var/log/server.log"
//
// A line is a key, an equals sign and a value, with any spaces between them. Comments and empty
// lines are passed over. One pair of double quotes around a value is removed.
package yrmconf

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Setting is one line of a file.
type Setting struct {
	Key   string
	Value string
	Line  int // counted from 1
}

// Parse returns the settings of a file in their order; for a key that comes twice the last setting
// counts. name is for messages.
func Parse(name string, r io.Reader) ([]Setting, error) {
	var settings []Setting
	lines := bufio.NewScanner(r)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found {
			return nil, fmt.Errorf("%s:%d: neither KEY = VALUE nor a comment", name, n)
		}
		settings = append(settings, Setting{Key: strings.TrimSpace(key), Value: unquote(strings.TrimSpace(value)), Line: n})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: reading: %w", name, n+1, err)
	}
	return settings, nil
}

func unquote(value string) string {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		return value[1 : n-1]
	}
	return value
}

package remote

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gotycoon/client"
)

// tableOptions say which columns of a table make a record.
type tableOptions struct {
	key, value, expires string
	separator           string
	noHeader            bool
}

// everything as -value means all columns but those of key and expiration time.
const everything = "*"

// columnXT reads an expiration time.
func columnXT(to sink, text string) (client.Expiry, error) {
	if text = strings.TrimSpace(text); text == "" {
		return to.never(), nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 1 && seconds < 1<<53) {
		return 0, fmt.Errorf("the expiration time %q is no number of seconds since 1970", text)
	}
	return client.Expiry(-int64(seconds)), nil
}

// csvSource is a CSV file. A line of it is known by its number in messages.
type csvSource struct {
	*call
	tableOptions
	comma rune

	names        []string
	keyAt        int
	valuesAt     []int
	expiresAt    int  // -1: there is none
	valueIsAlone bool // the value is the text of one column
}

func newCSV(c *call, o tableOptions) (*csvSource, error) {
	if o.separator == `\t` {
		o.separator = "\t"
	}
	comma, size := utf8.DecodeRuneInString(o.separator)
	if size == 0 || size != len(o.separator) || strings.ContainsRune("\"\r\n\ufffd", comma) {
		return nil, usageError("-separator: must be one character, no quote and no end of a line")
	}
	return &csvSource{call: c, tableOptions: o, comma: comma}, nil
}

func (s *csvSource) read(ctx context.Context, to sink) error {
	in, _, err := s.input()
	if err != nil {
		return err
	}
	defer in.Close()
	r := csv.NewReader(in)
	r.Comma, r.ReuseRecord = s.comma, true
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return s.end()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.inputName(), s.readable(err, len(row)))
		}
		if s.names == nil {
			if err := s.head(row); err != nil {
				return fmt.Errorf("%s: %w", s.inputName(), err)
			}
			if !s.noHeader {
				continue
			}
		}
		if err := s.row(ctx, to, row); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("%s: line %d: %w", s.inputName(), line, err)
		}
	}
}

// end is the end of the file.
func (s *csvSource) end() error {
	if s.names == nil && !s.noHeader {
		return fmt.Errorf("%s: the file is empty: its first line must name the columns, or give -no-header", s.inputName())
	}
	return nil
}

// readable says what is wrong with a line that cannot be read.
func (s *csvSource) readable(err error, columns int) error {
	p, ok := errors.AsType[*csv.ParseError](err)
	if !ok {
		return err
	}
	switch {
	case errors.Is(p, csv.ErrFieldCount):
		return fmt.Errorf("line %d has %d columns, and the first line has %d: put a value with %q in it in double quotes, or name the character between columns with -separator",
			p.StartLine, columns, len(s.names), s.separator)
	case errors.Is(p, csv.ErrBareQuote):
		return fmt.Errorf("line %d, column %d: a double quote within a value: put the whole value in double quotes, and this quote twice", p.Line, p.Column)
	case errors.Is(p, csv.ErrQuote):
		return fmt.Errorf("line %d, column %d: the value in double quotes that begins in line %d has no end, or something follows it: put double quotes within it twice",
			p.Line, p.Column, p.StartLine)
	}
	return err
}

// head finds the columns: by their names in the first line, or else by their numbers.
func (s *csvSource) head(row []string) error {
	s.names = slices.Clone(row)
	if s.noHeader {
		for i := range s.names {
			s.names[i] = strconv.Itoa(i + 1)
		}
	} else {
		s.names[0] = strings.TrimPrefix(s.names[0], "\ufeff") // of a file from a spreadsheet
	}
	var err error
	if s.keyAt, err = s.column(s.key, 0); err != nil {
		return err
	}
	s.expiresAt = -1
	if s.expires != "" {
		if s.expiresAt, err = s.column(s.expires, 0); err != nil {
			return err
		}
	}
	if s.value == everything {
		for i := range s.names {
			if i != s.keyAt && i != s.expiresAt {
				s.valuesAt = append(s.valuesAt, i)
			}
		}
		return nil
	}
	names := strings.Split(s.value, ",")
	for _, name := range names {
		at, err := s.column(name, 1)
		if err != nil {
			return err
		}
		s.valuesAt = append(s.valuesAt, at)
	}
	s.valueIsAlone = len(names) == 1
	return nil
}

// column returns the place of a column; without a name it is usual.
func (s *csvSource) column(name string, usual int) (int, error) {
	at := usual
	if name != "" {
		at = slices.Index(s.names, name)
	}
	switch {
	case at >= len(s.names):
		return 0, fmt.Errorf("there is only the column %q: -separator names the character between columns, -value the column of the values", s.names[0])
	case at < 0:
		return 0, fmt.Errorf("there is no column %q; there are %q", name, s.names)
	}
	return at, nil
}

// row stores the record of a line.
func (s *csvSource) row(ctx context.Context, to sink, row []string) (err error) {
	ch := change{key: strings.Clone(row[s.keyAt]), xt: to.never()}
	if s.expiresAt >= 0 {
		if ch.xt, err = columnXT(to, row[s.expiresAt]); err != nil {
			return fmt.Errorf("column %q: %w", s.names[s.expiresAt], err)
		}
	}
	if s.valueIsAlone {
		ch.value = []byte(row[s.valuesAt[0]])
	} else {
		object := map[string]string{}
		for _, i := range s.valuesAt {
			object[s.names[i]] = row[i]
		}
		if ch.value, err = json.Marshal(object); err != nil {
			return err
		}
	}
	return to.put(ctx, ch, len(ch.key)+len(ch.value))
}

package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// jsonSource is a file of JSON objects, one a line as a rule. Without column options it is what
// list -json -pv -pt prints.
type jsonSource struct {
	*call
	tableOptions
}

func (s *jsonSource) read(ctx context.Context, to sink) error {
	in, _, err := s.input()
	if err != nil {
		return err
	}
	defer in.Close()
	lines := &lineReader{Reader: in, line: 1}
	d := json.NewDecoder(lines)
	for {
		var object map[string]json.RawMessage
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		at := lines.at(lines.offsetOf(err, d.InputOffset()))
		if err != nil {
			err = noObject(err)
		} else {
			err = s.object(ctx, to, object)
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", s.inputName(), at, err)
		}
	}
}

// noObject says what is wrong with a text that is no object.
func noObject(err error) error {
	const form = `each line must be an object such as {"key":"japan","value":"tokyo"}`
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("there is a JSON %s: %s", wrong.Value, form)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends within an object")
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("this is no JSON (%w): %s", err, form)
	}
	return err
}

// lineReader counts the lines of what a decoder reads ahead.
type lineReader struct {
	io.Reader
	read int64   // bytes
	ends []int64 // of lines, from the line of the latest question on
	line int     // that the latest question was about
}

// Read notes where lines end.
func (r *lineReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			r.ends = append(r.ends, r.read+int64(i))
		}
	}
	r.read += int64(n)
	return n, err
}

// offsetOf returns where an error is: as a rule where the decoder is.
func (r *lineReader) offsetOf(err error, decoder int64) int64 {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return syntax.Offset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return r.read - 1
	}
	return decoder
}

// at returns the number of the line at an offset, which does not fall from call to call.
func (r *lineReader) at(offset int64) int {
	passed, _ := slices.BinarySearch(r.ends, offset)
	r.ends = slices.Delete(r.ends, 0, passed)
	r.line += passed
	return r.line
}

// object stores the record of an object.
func (s *jsonSource) object(ctx context.Context, to sink, object map[string]json.RawMessage) error {
	keyName, xtName := cmp.Or(s.key, "key"), cmp.Or(s.expires, "xt")
	key, err := column(object, keyName)
	if err != nil {
		return err
	}
	ch := change{key: string(key)}
	when, err := column(object, xtName)
	if err != nil && s.expires != "" {
		return err
	}
	if ch.xt, err = columnXT(to, string(when)); err != nil {
		return err
	}
	ch.value, err = s.valueOf(object, keyName, xtName)
	if err != nil {
		return err
	}
	return to.put(ctx, ch, len(ch.key)+len(ch.value))
}

// valueOf returns the value: of one column, or an object of several.
func (s *jsonSource) valueOf(object map[string]json.RawMessage, keyName, xtName string) ([]byte, error) {
	names := strings.Split(cmp.Or(s.value, "value"), ",")
	if s.value != everything && len(names) == 1 {
		return column(object, names[0])
	}
	part := map[string]json.RawMessage{}
	if s.value == everything {
		for name, value := range object {
			if name != keyName && name != xtName {
				part[name] = value
			}
		}
		return json.Marshal(part)
	}
	for _, name := range names {
		value, ok := object[name]
		if !ok {
			return nil, noMember(object, name)
		}
		part[name] = value
	}
	return json.Marshal(part)
}

// noMember is the error of an object that lacks a column.
func noMember(object map[string]json.RawMessage, name string) error {
	return fmt.Errorf("there is no %q; there are %q: -key, -value and -expires name them", name, slices.Sorted(maps.Keys(object)))
}

// column returns the text of a string, or what stands for another value. Bytes that are no text are
// in a column NAME_base64, as list -json prints them. null is empty.
func column(object map[string]json.RawMessage, name string) ([]byte, error) {
	raw, ok := object[name]
	if !ok {
		coded, ok := object[name+"_base64"]
		if !ok {
			return nil, noMember(object, name)
		}
		var text string
		err := json.Unmarshal(coded, &text)
		if err == nil {
			if raw, err = base64.StdEncoding.DecodeString(text); err == nil {
				return raw, nil
			}
		}
		return nil, fmt.Errorf("%s_base64 is no text in Base64: %w", name, err)
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err == nil {
		if text == nil {
			return nil, nil
		}
		return []byte(*text), nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.Bytes(), err
}

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
	d := json.NewDecoder(in)
	for n := 1; ; n++ {
		var object map[string]json.RawMessage
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.object(ctx, to, object)
		}
		if err != nil {
			return fmt.Errorf("%s: object %d: %w", s.inputName(), n, err)
		}
	}
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
			return nil, fmt.Errorf("there is no %q", name)
		}
		part[name] = value
	}
	return json.Marshal(part)
}

// column returns the text of a string, or what stands for another value. Bytes that are no text are
// in a column NAME_base64, as list -json prints them. null is empty.
func column(object map[string]json.RawMessage, name string) ([]byte, error) {
	raw, ok := object[name]
	if !ok {
		coded, ok := object[name+"_base64"]
		if !ok {
			return nil, fmt.Errorf("there is no %q", name)
		}
		var text string
		if err := json.Unmarshal(coded, &text); err != nil {
			return nil, err
		}
		return base64.StdEncoding.DecodeString(text)
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

package redisfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Keys is where the commands of an AOF are carried out.
type Keys interface {
	Get(key string) (value []byte, expires int64, found bool, err error)
	Set(key string, value []byte, expires int64) error
	Remove(key string) error
	Clear() error
}

// AOFFiles returns the files of an append-only file in the order in which they are to be read. path
// is a file, a manifest, or the directory that redis 7 and later keep the files in.
func AOFFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	const manifest = ".manifest"
	if info.IsDir() {
		found, err := filepath.Glob(filepath.Join(path, "*"+manifest))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("%s has %d manifests of an append-only file instead of one", path, len(found))
		}
		path = found[0]
	}
	if !strings.HasSuffix(path, manifest) {
		return []string{path}, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(string(text)) { // file NAME seq NUMBER type b|i|h
		words := strings.Fields(line)
		kind := slices.Index(words, "type") + 1
		if len(words) < 6 || words[0] != "file" || kind == 0 || kind == len(words) {
			return nil, damaged("the line %q of the manifest", line)
		}
		if words[kind] != "h" { // history: no longer needed
			files = append(files, filepath.Join(filepath.Dir(path), words[1]))
		}
	}
	return files, nil
}

// AOF carries out the commands of one file on strings in one database. A file may begin with an RDB
// file, or be one.
func AOF(r io.Reader, database int, keys Keys) (Left, error) {
	a := &aof{in: bufio.NewReaderSize(r, readBuffer), wanted: database, keys: keys}
	if head, _ := a.in.Peek(5); string(head) == "REDIS" {
		left, err := readRDB(a.in, database, func(key, value []byte, expires int64) error {
			return keys.Set(string(key), value, expires)
		})
		if err != nil {
			return left, err
		}
		a.left = left
	}
	err := a.read()
	return a.left, err
}

// aof reads one file.
type aof struct {
	in     *bufio.Reader
	wanted int
	keys   Keys
	left   Left

	database int
	inMulti  bool
	multi    [][][]byte // the commands of a transaction that has not ended
}

// read carries out all commands. A transaction is carried out at its end.
func (a *aof) read() error {
	for {
		args, err := a.command()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			a.left.Cut = a.left.Cut || errors.Is(err, io.ErrUnexpectedEOF) || a.inMulti
			return nil
		}
		if err != nil {
			return err
		}
		switch name := strings.ToUpper(string(args[0])); {
		case name == "MULTI":
			a.inMulti = true
		case name == "EXEC":
			for _, queued := range a.multi {
				if err := a.execute(queued); err != nil {
					return err
				}
			}
			a.inMulti, a.multi = false, nil
		case a.inMulti:
			a.multi = append(a.multi, args)
		default:
			if err := a.execute(args); err != nil {
				return err
			}
		}
	}
}

// The largest numbers that redis accepts in a command.
const (
	maxArgs = 1 << 20
	maxArg  = 512 << 20
)

// command reads a command: *NUMBER, and for each argument $LENGTH and its bytes, with CR LF behind
// each. Lines with # are annotations. The error is io.EOF at the end, and io.ErrUnexpectedEOF
// within a command.
func (a *aof) command() ([][]byte, error) {
	n, err := a.number('*', maxArgs)
	for err == nil && n < 0 { // an annotation
		n, err = a.number('*', maxArgs)
	}
	if err != nil {
		return nil, err
	}
	args := make([][]byte, 0, min(n, 16))
	for range n {
		size, err := a.number('$', maxArg)
		if err != nil || size < 0 {
			return nil, within(err)
		}
		var b bytes.Buffer
		if _, err := io.CopyN(&b, a.in, int64(size)+2); err != nil {
			return nil, within(err)
		}
		args = append(args, b.Bytes()[:size])
	}
	if len(args) == 0 {
		return nil, damaged("a command without a name")
	}
	return args, nil
}

// within is the error of an end within a command.
func within(err error) error {
	if err == nil {
		return damaged("an annotation within a command")
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// number reads a line with a mark and a number, -1 for an annotation.
func (a *aof) number(mark byte, most int) (int, error) {
	line, err := a.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) > 0:
		return 0, io.ErrUnexpectedEOF
	case err != nil && !errors.Is(err, bufio.ErrBufferFull):
		return 0, err
	case line[0] == '#':
		return -1, nil
	}
	n, err := strconv.Atoi(strings.TrimRight(string(line[1:]), "\r\n"))
	if line[0] != mark || err != nil || n < 0 || n > most {
		return 0, damaged("%q where a line with %c and a number should be", line[:min(len(line), 40)], mark)
	}
	return n, nil
}

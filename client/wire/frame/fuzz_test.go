package frame_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
)

// Each target decodes arbitrary bytes: the decoder may refuse them or ask for more, what it accepts
// encodes to the same bytes again.

func FuzzFrameHeader(f *testing.F) { fuzz(f, frame.DecodeHeader, frame.AppendHeader) }

func FuzzFrameKey(f *testing.F) { fuzz(f, frame.DecodeKey, frame.AppendKey) }

func FuzzFrameRecord(f *testing.F) { fuzz(f, frame.DecodeRecord, frame.AppendRecord) }

func FuzzFrameScript(f *testing.F) { fuzz(f, frame.DecodeScript, frame.AppendScript) }

func FuzzFramePair(f *testing.F) { fuzz(f, frame.DecodePair, frame.AppendPair) }

func FuzzFrameFollow(f *testing.F) { fuzz(f, frame.DecodeFollow, frame.AppendFollow) }

func FuzzFrameMessage(f *testing.F) { fuzz(f, frame.DecodeMessage, frame.AppendMessage) }

func FuzzFrameReply(f *testing.F) {
	decode := func(p []byte) (uint32, int, error) { return frame.DecodeReply(p, frame.GetBulk) }
	encode := func(dst []byte, n uint32) []byte { return frame.AppendReply(dst, frame.GetBulk, n) }
	fuzz(f, decode, encode)
}

func fuzz[T any](f *testing.F, decode func([]byte) (T, int, error), encode func([]byte, T) []byte) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		v, n, err := decode(p)
		switch {
		case err == nil:
			require.LessOrEqual(t, n, len(p))
			require.Equal(t, p[:n], encode(nil, v))
		case errors.Is(err, frame.ErrShort):
			require.Greater(t, n, len(p))
		}
	})
}

// seeds returns one example of each part, and the bytes of the recorded conversations: whole, and
// without the fixed beginning of a message, where its first record is.
func seeds(f *testing.F) [][]byte {
	var all [][]byte
	for _, c := range parts() {
		all = append(all, c.encode())
	}
	const recordings = "../../../compat/testdata/binary" // of the repository, not of this module
	if _, err := os.Stat("../../../compat"); err != nil {
		return all
	}
	names, err := filepath.Glob(recordings + "/*.jsonl")
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		for _, s := range conversation(f, name) {
			all = append(all, s)
			for _, skip := range []int{1, frame.ReplyLen, frame.HeaderLen} {
				if len(s) > skip {
					all = append(all, s[skip:])
				}
			}
		}
	}
	return all
}

// conversation returns what was sent and received in a file of recorded cases.
func conversation(f *testing.F, name string) [][]byte {
	file, err := os.Open(name)
	require.NoError(f, err)
	defer file.Close()
	var all [][]byte
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c struct {
			Steps []struct{ Send, Recv string }
		}
		require.NoError(f, json.Unmarshal(lines.Bytes(), &c))
		for _, step := range c.Steps {
			all = append(all, latin1(step.Send), latin1(step.Recv))
		}
	}
	require.NoError(f, lines.Err())
	return all
}

// latin1 turns a recorded string, whose code points are bytes, into those bytes.
func latin1(s string) []byte {
	s = strings.ReplaceAll(s, "@TS8@", "\x00\x00\x00\x00\x00\x00\x00\x01")
	p := make([]byte, 0, len(s))
	for _, r := range s {
		p = append(p, byte(r))
	}
	return p
}

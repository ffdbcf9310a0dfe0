//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
)

func TestKeysAreDistinctAndValuesTellTheirUpdate(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint64(100_000) {
		seen[string(ladderKey(nil, n))] = true
	}
	require.Len(t, seen, 100_000)
	require.Equal(t, fmt.Sprintf("%016x", mix(42)), string(ladderKey(nil, 41)))

	v := ladderValue(nil, 7, 5)
	require.Len(t, v, valueSize)
	require.True(t, isOf(v, 7, 5, 5))
	require.True(t, isOf(v, 7, 0, 9))
	require.False(t, isOf(v, 7, 6, 9), "an older value than was acknowledged")
	require.False(t, isOf(v, 7, 0, 4), "a value that nobody has sent")
	require.False(t, isOf(v, 8, 5, 5), "the value of another record")
	require.False(t, isOf(v[:99], 7, 5, 5))
	v[99]++
	require.False(t, isOf(v, 7, 5, 5))
}

// The fill stores every record once, also where the last bulk is not whole.
func TestFillStoresEveryRecordOnce(t *testing.T) {
	s := newBulkServer(t)
	var done atomic.Int64
	waits, err := bulkLoad(s.addr, 1234, fillSeq, &done, eachOnce)
	require.NoError(t, err)
	require.Equal(t, uint64(13), waits.Total())
	require.Equal(t, int64(1234), done.Load())
	require.Equal(t, 1234, s.stored)
	require.Len(t, s.records, 1234)
	_, err = bulkLoad(s.addr, 500, updateSeq, &done, anyOf(1234))
	require.NoError(t, err)
	require.Equal(t, 1734, s.stored)
	require.Len(t, s.records, 1234, "updates store no new records")
}

// What is gone, older than acknowledged, or damaged after a restart counts as lost.
func TestLostRecordsAreFound(t *testing.T) {
	s := newBulkServer(t)
	var done atomic.Int64
	_, err := bulkLoad(s.addr, 1000, killSeq+3, &done, eachOnce)
	require.NoError(t, err)
	st := &store{acknowledged: map[uint64]uint64{}, sent: killSeq + 4}
	for n := range uint64(1000) {
		st.acknowledged[n] = killSeq + 2 + n%2
	}
	lost, err := st.check(s.addr)
	require.NoError(t, err)
	require.Zero(t, lost)

	delete(s.records, string(ladderKey(nil, 1)))
	s.records[string(ladderKey(nil, 2))] = string(ladderValue(nil, 2, killSeq+1))
	s.records[string(ladderKey(nil, 3))] = string(ladderValue(nil, 3, killSeq+5))
	s.records[string(ladderKey(nil, 4))] = strings.Repeat("x", valueSize)
	s.records[string(ladderKey(nil, 5))] = string(ladderValue(nil, 5, killSeq+4)) // sent, not acknowledged
	lost, err = st.check(s.addr)
	require.NoError(t, err)
	require.Equal(t, 4, lost)
}

// bulkServer keeps records of one size in a map.
type bulkServer struct {
	addr    string
	mu      sync.Mutex
	records map[string]string
	stored  int
}

func newBulkServer(t *testing.T) *bulkServer {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	s := &bulkServer{addr: l.Addr().String(), records: map[string]string{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); s.answer(in, c) == nil; {
				}
			}()
		}
	}()
	return s
}

func (s *bulkServer) answer(in *bufio.Reader, out io.Writer) error {
	head, err := in.Peek(frame.HeaderLen)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, n, err := frame.DecodeHeader(head)
	if err != nil {
		return err
	}
	_, _ = in.Discard(n)
	reply, hits := []byte(nil), uint32(0)
	for range h.RNum {
		part := make([]byte, 6+ladderKeySize)
		if h.Magic == frame.SetBulk {
			part = make([]byte, frame.RecordHead+ladderKeySize+valueSize)
		}
		if _, err := io.ReadFull(in, part); err != nil {
			return err
		}
		if h.Magic == frame.SetBulk {
			r, _, err := frame.DecodeRecord(part)
			if err != nil {
				return err
			}
			s.records[string(r.Key)] = string(r.Value)
			s.stored++
			hits++
			continue
		}
		k, _, err := frame.DecodeKey(part)
		if err != nil {
			return err
		}
		if v, ok := s.records[string(k.Key)]; ok {
			reply = frame.AppendRecord(reply, frame.Record{Key: k.Key, Value: []byte(v)})
			hits++
		}
	}
	_, err = out.Write(append(frame.AppendReply(nil, h.Magic, hits), reply...))
	return err
}

package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/compat/history"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// slave follows members as a slave of the original does, which knows no clusters: it has nothing
// but the largest stamp that it was ever sent, and goes on behind it wherever it is turned to.
type slave struct {
	t  *testing.T
	at uint64 // as its RTS file has it
	// most is how many updates it takes before it ends the connection; 0: all.
	most int

	mu    sync.Mutex
	has   map[string]string
	seen  map[string]bool // each update, as key=value
	stop  chan struct{}   // nil: it does not follow
	ended sync.WaitGroup
}

func newSlave(t *testing.T) *slave {
	s := &slave{t: t, has: map[string]string{}, seen: map[string]bool{}}
	t.Cleanup(s.down)
	return s
}

var errSlaveRefused = errors.New("the member refuses the slave")

// up begins to follow whichever member next names, and another one when a connection ends.
func (s *slave) up(next func() *member) {
	stop := make(chan struct{})
	s.stop = stop
	s.ended.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if m := next(); m != nil {
				_ = s.follow(m, stop) // a member that is down, or paused, or steps down
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// down ends following.
func (s *slave) down() {
	if s.stop != nil {
		close(s.stop)
		s.ended.Wait()
		s.stop = nil
	}
}

// follow takes updates from a member until the connection ends.
func (s *slave) follow(m *member, stop chan struct{}) error {
	c, err := history.Dial(m.port)
	if err != nil {
		return err
	}
	defer c.Close()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-stop:
			c.Close()
		case <-ended:
		}
	}()
	if _, err := c.Write(frame.AppendFollow(nil, frame.Follow{TS: s.at, SID: 99})); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	first, err := in.ReadByte()
	if err != nil {
		return err
	}
	if frame.Magic(first) != frame.Replication {
		return errSlaveRefused
	}
	var got []byte
	for n := 0; s.most == 0 || n < s.most; {
		message, size, err := frame.DecodeMessage(got)
		if errors.Is(err, frame.ErrShort) {
			begun := len(got)
			got = append(got, make([]byte, size-begun)...)
			// A primary that is paused must not keep the slave for ever; the original waits a minute.
			if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				return err
			}
			if _, err := io.ReadFull(in, got[begun:]); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		got = got[size:]
		if message.Magic == frame.Heartbeat {
			if _, err := c.Write([]byte{byte(frame.Ack)}); err != nil {
				return err
			}
		} else if s.take(m, message) {
			n++
		}
		s.at = max(s.at, message.TS)
	}
	return nil
}

// take stores an update, and reports whether it is one.
func (s *slave) take(m *member, message frame.Message) bool {
	u, err := ulog.ParseMessage(message.Log)
	if err != nil || u.DBID != 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(u.Key)
	switch u.Op {
	case ulog.OpSet:
		_, value, _ := record.Split(u.Value)
		// The values of a key grow.
		before, _ := strconv.Atoi(s.has[key])
		if now, _ := strconv.Atoi(string(value)); now <= before {
			s.t.Errorf("member %d sends %s=%s behind %s=%d, ts=%d", m.index, key, value, key, before, message.TS)
		}
		s.has[key] = string(value)
		s.seen[fmt.Sprintf("%s=%s", key, value)] = true
	case ulog.OpRemove:
		delete(s.has, key)
	default:
		s.t.Errorf("member %d sends an update of the kind %d", m.index, u.Op)
	}
	return true
}

// lacks returns what the slave does not have as it is.
func (s *slave) lacks(all map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(all) == len(s.has) {
		same := true
		for key, value := range all {
			same = same && s.has[key] == value
		}
		if same {
			return ""
		}
	}
	return difference(all, s.has)
}

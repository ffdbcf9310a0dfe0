package compat

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// attack is what a hostile client does. It returns the server's answers, in the order of its
// connections.
type attack struct {
	name string
	run  func(t *testing.T, h *hostile) (answers []string)
	want string // one of the answers at least begins so
}

// hostile is a server with a memory limit: in a control group, or with -memory where no control
// group can be made.
type hostile struct {
	server *ktproc.Server
	pid    int
	cache  int   // port of memcached
	others []int // ports of counters, locks, sequences, quotas and the admin listener
	part   int   // of the attack's full size
}

// mib is a size of the attack at full scale in MiB.
func (h *hostile) mib(n int) int { return n << 20 / h.part }

// TestHostileClientsInACage sends large, many and half-sent requests over all protocols, while a
// polite client measures its waits. A second polite client measures the waits at a server that is
// not attacked. The process must stay within the memory of its cage. With GOTYCOON_BIG=1 the
// attacks have their full size, in a cage of 2 GiB.
func TestHostileClientsInACage(t *testing.T) {
	part := 8
	if os.Getenv("GOTYCOON_BIG") != "" {
		part = 1
	}
	bin := ktproc.BuildPlain(t, "ktserver")
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			h := startInCage(t, bin, part)
			calm := h.politeClient(t, ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: []string{"a.kct"}}).Port)
			polite := h.politeClient(t, h.server.Port)
			before := h.peak(t)
			begun := time.Now()
			answers := a.run(t, h)
			took := time.Since(begun)
			read, write := polite()
			calmRead, calmWrite := calm()
			peak := h.peak(t)
			fresh := freshMemory(t, peak)
			t.Logf("%s: peak=%d MiB (%d before) cage=%d MiB took=%.1fs worst read=%s write=%s (%s and %s beside), %s for so much fresh memory, answers=%s", a.name, peak>>20, before>>20, h.mib(2048)>>20, took.Seconds(), read, write, calmRead, calmWrite, fresh, summary(answers))
			require.Less(t, peak, int64(h.mib(2048)), "bytes of memory")
			// Both wait for what the machine has to do otherwise, as they do at a server that
			// nobody attacks: for other processes, and for memory that nobody has used yet, which
			// the host of a virtual machine may take a long time to give. A write waits also for
			// the log to end a segment in front of a large value.
			require.Less(t, read, time.Second+5*calmRead+2*fresh)
			require.Less(t, write, time.Second+5*calmWrite+2*fresh)
			require.Contains(t, strings.Join(answers, "\n"), a.want)
		})
	}
}

// freshMemory returns how long this machine takes to give a process so many bytes of memory.
func freshMemory(t *testing.T, n int64) time.Duration {
	t.Helper()
	begun := time.Now()
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	for at := 0; at < len(b); at += os.Getpagesize() {
		b[at] = 1
	}
	took := time.Since(begun)
	require.NoError(t, unix.Munmap(b))
	return took
}

// summary counts equal answers.
func summary(answers []string) string {
	counts := map[string]int{}
	for _, a := range answers {
		counts[a]++
	}
	return fmt.Sprint(counts)
}

// startInCage starts a server with a file database that has the polite client's record.
func startInCage(t *testing.T, bin string, part int) *hostile {
	t.Helper()
	h := &hostile{part: part, cache: freeport.Take(t)}
	args := []string{"-plsv", "ktplugservmemc.so", "-plex", fmt.Sprintf("port=%d#opts=m", h.cache)}
	for _, option := range []string{"-counter-port", "-lock-port", "-sequence-port", "-quota-port"} {
		port := freeport.Take(t)
		h.others = append(h.others, port)
		args = append(args, option, strconv.Itoa(port))
	}
	h.others = append(h.others, freeport.Take(t))
	args = append(args, "-admin", fmt.Sprintf("127.0.0.1:%d", h.others[len(h.others)-1]))
	dir := t.TempDir()
	if group := makeCage(t, h.mib(2048)); group != "" {
		wrapped := filepath.Join(dir, "caged")
		require.NoError(t, os.WriteFile(wrapped, fmt.Appendf(nil, "#!/bin/sh\necho $$ > %s/cgroup.procs\nexec %s \"$@\"\n", group, bin), 0o700))
		bin = wrapped
	} else {
		args = append(args, "-memory", strconv.Itoa(h.mib(2048)))
	}
	h.server = ktproc.Start(t, ktproc.Options{Bin: bin, Dir: dir, Args: args, DBs: []string{"a.kct"}})
	h.pid = h.server.PID()
	return h
}

// makeCage makes a control group (version 1) with a memory limit. It returns "" if this is not
// possible.
func makeCage(t *testing.T, limit int) string {
	dir := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("gotycoon-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if os.Mkdir(dir, 0o700) != nil {
		return ""
	}
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.Remove(dir) == nil }, 30*time.Second, 10*time.Millisecond)
	})
	if os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte(strconv.Itoa(limit)), 0o600) != nil {
		return ""
	}
	return dir
}

// peak returns the most memory in bytes that the process has had, without the pages that it shares
// with files.
func (h *hostile) peak(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.pid))
	require.NoError(t, err, "the server is gone")
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(data)
	require.NotNil(t, m)
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(t, err)
	return n << 10
}

// politeClient reads and writes a small record again and again. The returned function ends it and
// returns the longest waits.
func (h *hostile) politeClient(t *testing.T, port int) (end func() (read, write time.Duration)) {
	t.Helper()
	c := h.dial(t, port)
	in := bufio.NewReader(c)
	var worst [2]time.Duration
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			for i, request := range []string{"PUT /polite HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "GET /polite HTTP/1.1\r\n\r\n"} {
				begun := time.Now()
				_, err := io.WriteString(c, request)
				line, readErr := in.ReadString('\n')
				if err != nil || readErr != nil || !strings.Contains(line, " 20") {
					t.Errorf("the polite client is not served: %q %v %v", line, err, readErr)
					return
				}
				worst[i] = max(worst[i], time.Since(begun))
				for line != "\r\n" && readErr == nil {
					line, readErr = in.ReadString('\n')
				}
				if request[0] == 'G' {
					_, _ = in.ReadByte()
				}
			}
		}
	}()
	return func() (read, write time.Duration) {
		close(stop)
		<-done
		return worst[1], worst[0]
	}
}

func (h *hostile) dial(t *testing.T, port int) net.Conn {
	t.Helper()
	var c net.Conn
	require.Eventually(t, func() (ok bool) { // further ports are opened after the first
		var err error
		c, err = net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		return err == nil
	}, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
	t.Cleanup(func() { c.Close() })
	return c
}

// send sends a head and n bytes of the pattern. It returns the first line of the answer, "closed"
// if there is none.
func send(c net.Conn, head string, n int, pattern string) string {
	answer := make(chan string, 1)
	go func() {
		first := make([]byte, 64)
		n, _ := c.Read(first)
		line, _, _ := strings.Cut(string(first[:n]), "\n")
		answer <- line
	}()
	_, err := io.WriteString(c, head)
	piece := []byte(strings.Repeat(pattern, max(1, 64<<10/max(1, len(pattern)))))
	for err == nil && n > 0 {
		p := piece[:min(n, len(piece))]
		n -= len(p)
		_, err = c.Write(p)
	}
	line := <-answer
	if line == "" {
		return "closed"
	}
	if line[0] == 0xBF {
		return "BF"
	}
	return strings.TrimSpace(line[:min(len(line), 40)])
}

// times runs an attack on many connections at once.
func times(n int, do func(i int) string) []string {
	answers := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i] = do(i) })
	}
	all.Wait()
	return answers
}

// holdOpen opens n connections, sends the same bytes on each, and leaves the connections open for a
// while.
func (h *hostile) holdOpen(t *testing.T, n int, head string, bytes int, pattern string) []string {
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = h.dial(t, h.server.Port)
	}
	patience := 15 * time.Second
	if h.part == 1 {
		patience *= 4
	}
	answers := times(n, func(i int) string {
		_ = conns[i].SetDeadline(time.Now().Add(patience))
		return send(conns[i], head, bytes, pattern)
	})
	return answers
}

// askAndLeave sends a request, reads the beginning of the answer, and does not read the rest.
func (h *hostile) askAndLeave(t *testing.T, port int, request string) string {
	return send(h.dial(t, port), request, 0, "")
}

func putHead(size int) string {
	return fmt.Sprintf("PUT /large HTTP/1.1\r\nContent-Length: %d\r\n\r\n", size)
}

func rpcTSV(name string, size int) string {
	return fmt.Sprintf("POST /rpc/%s HTTP/1.1\r\nContent-Type: text/tab-separated-values\r\nContent-Length: %d\r\n\r\n", name, size)
}

// bulkHead is the beginning of a binary request, and keyHead or recordHead of its first part.
func bulkHead(magic byte, n int) string {
	return string(binary.BigEndian.AppendUint32([]byte{magic, 0, 0, 0, 0}, uint32(n)))
}

func sized(before int, sizes ...int) string {
	b := make([]byte, before)
	for _, n := range sizes {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return string(b)
}

func attacks() []attack {
	one := func(head func(h *hostile) (string, int, string)) func(*testing.T, *hostile) []string {
		return func(t *testing.T, h *hostile) []string {
			text, n, pattern := head(h)
			return []string{send(h.dial(t, h.server.Port), text, n, pattern)}
		}
	}
	return []attack{
		{"one PUT of 250 MiB", one(func(h *hostile) (string, int, string) { return putHead(h.mib(250)), h.mib(250), "x" }), "201"},
		{"twelve PUTs of 250 MiB", func(t *testing.T, h *hostile) []string {
			return times(12, func(int) string { return send(h.dial(t, h.server.Port), putHead(h.mib(250)), h.mib(250), "x") })
		}, ""},
		{"sixty PUTs of 30 MiB held open", func(t *testing.T, h *hostile) []string {
			return h.holdOpen(t, 60, putHead(h.mib(30)), h.mib(30)-1, "x")
		}, "503"},
		{"forty half-sent bodies of 60 MiB", func(t *testing.T, h *hostile) []string {
			return h.holdOpen(t, 40, putHead(h.mib(60)), h.mib(30), "x")
		}, "503"},
		{"600 headers of 900 KiB held open", func(t *testing.T, h *hostile) []string {
			return h.holdOpen(t, 600/h.part, "GET / HTTP/1.1\r\n", 900<<10, "X: "+strings.Repeat("x", 1000)+"\r\n")
		}, "503"},
		{"six binary keys of 100 MiB", func(t *testing.T, h *hostile) []string {
			return times(6, func(int) string {
				return send(h.dial(t, h.server.Port), bulkHead(0xB9, 1)+sized(2, h.mib(100)), h.mib(100), "k")
			})
		}, "BF"},
		{"a chunked body of 1 GiB", one(func(h *hostile) (string, int, string) {
			return "PUT /large HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", h.mib(1024), fmt.Sprintf("%x\r\n%s\r\n", 32<<10, strings.Repeat("x", 32<<10))
		}), "413"},
		{"a chunk size of 2^60 with leading zeros", one(func(h *hostile) (string, int, string) {
			return "PUT /large HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 60) + "1000000000000000\r\n", h.mib(1024), "x"
		}), "413"},
		{"a bulk of 20 million tiny records", one(func(h *hostile) (string, int, string) {
			return rpcTSV("set_bulk", 5*20_000_000/h.part), 5 * 20_000_000 / h.part, "_a\tb\n"
		}), ""},
		{"a binary bulk of 20 million tiny records", func(t *testing.T, h *hostile) []string {
			n := 20_000_000 / h.part
			return []string{send(h.dial(t, h.server.Port), bulkHead(0xB8, n), 19*n, sized(2, 1, 0)+"\x7f\xff\xff\xff\xff\xff\xff\xff"+"k")}
		}, "\xb8"},
		{"echo with 20 million columns", one(func(h *hostile) (string, int, string) {
			return rpcTSV("echo", 3*20_000_000/h.part), 3 * 20_000_000 / h.part, "\t\n\n"
		}), ""},
		{"a binary get of 20 million keys", func(t *testing.T, h *hostile) []string {
			require.Equal(t, "HTTP/1.1 201 Created", send(h.dial(t, h.server.Port), "PUT /k HTTP/1.1\r\nContent-Length: 100\r\n\r\n", 100, "x"))
			n := 20_000_000 / h.part
			return []string{send(h.dial(t, h.server.Port), bulkHead(0xBA, n), 7*n, sized(2, 1)+"k")}
		}, "BF"},
		{"memcached items of 250 MiB", func(t *testing.T, h *hostile) []string {
			return times(8, func(int) string {
				n := h.mib(250) / 3 * 3
				return send(h.dial(t, h.cache), fmt.Sprintf("set k 0 0 %d\r\n", n-2), n, "x\r\n")
			})
		}, "SERVER_ERROR out of memory"},
		{"64 readers of a record of 60 MiB", func(t *testing.T, h *hostile) []string {
			require.Equal(t, "HTTP/1.1 201 Created", send(h.dial(t, h.server.Port), putHead(h.mib(60)), h.mib(60), "x"))
			return times(64, func(int) string { return h.askAndLeave(t, h.server.Port, "GET /large HTTP/1.1\r\n\r\n") })
		}, "HTTP/1.1 503 Service Unavailable"},
		{"64 readers of an item of 60 MiB", func(t *testing.T, h *hostile) []string {
			n := h.mib(60) / 3 * 3
			require.Equal(t, "STORED", send(h.dial(t, h.cache), fmt.Sprintf("set large 0 0 %d\r\n", n-2), n, "x\r\n"))
			return times(64, func(int) string { return h.askAndLeave(t, h.cache, "get large\r\n") })
		}, "SERVER_ERROR out of memory"},
		{"64 bulks with a record of 60 MiB", func(t *testing.T, h *hostile) []string {
			require.Equal(t, "HTTP/1.1 201 Created", send(h.dial(t, h.server.Port), putHead(h.mib(60)), h.mib(60), "x"))
			return times(64, func(int) string { return h.askAndLeave(t, h.server.Port, bulkHead(0xBA, 1)+sized(2, 5)+"large") })
		}, "BF"},
		{"mutated frames", func(t *testing.T, h *hostile) []string {
			answers := h.mutatedFrames(t, 1400)
			require.Less(t, h.peak(t), int64(512<<20), "bytes of memory, whatever the scale")
			return answers
		}, ""},
	}
}

// mutatedFrames sends valid frames with some bytes changed to all ports.
func (h *hostile) mutatedFrames(t *testing.T, n int) []string {
	good := []string{
		putHead(100) + strings.Repeat("x", 100), rpcTSV("set_bulk", 20) + "_a\tb\n_c\td\natomic\t\n",
		"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
		bulkHead(0xB8, 1) + sized(2, 1, 1) + "\x7f\xff\xff\xff\xff\xff\xff\xffkv", bulkHead(0xBA, 2) + sized(2, 1) + "k" + sized(2, 1) + "l",
		"\xb4" + sized(4, 4, 1) + "name" + sized(0, 1, 1) + "kv", "\xb1" + sized(4, 0, 0) + "\x00\x01", "\xb6" + sized(4, 0, 0) + "\x00\x01",
		"\x90\x02\x00\x00\x00\x00\x00\x0b\x00\x00\x00\x01\x00\x00\x00\x05\x00\x01k\x00\x00", "\x90\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01",
		"lock-fenced key 1 1 5\nlock other\nstatus key\nlist\nrelease key\nquit\n", "GET /fetch?count=3&name=a HTTP/1.1\r\n\r\n", "GET /apply?resource=1&id=2 HTTP/1.1\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"set k 0 0 5\r\nabcde\r\nget k\r\n", "\x80\x01\x00\x01\x08\x00\x00\x00\x00\x00\x00\x0a" + sized(20) + "kv", "ms k 5 c\r\nabcde\r\n",
	}
	random := uint64(1)
	draw := func(n int) int { random = random*6364136223846793005 + 1442695040888963407; return int(random>>33) % n }
	for i := range n {
		frame := []byte(good[draw(len(good))])
		for range 1 + draw(3) {
			frame[draw(len(frame))] = byte(draw(256))
		}
		ports := append([]int{h.server.Port, h.cache}, h.others...)
		c := h.dial(t, ports[i%len(ports)])
		_, _ = c.Write(bytes.Repeat(frame, 1+draw(20)))
		if i%3 > 0 {
			c.Close()
		}
	}
	return nil
}

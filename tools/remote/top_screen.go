package remote

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"gotycoon/tools/show"
)

// Escape sequences of terminals.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J"
)

// history is the number of samples in a chart.
const history = 60

// screen shows a server on a whole terminal.
type screen struct {
	*call
	show.Style
	keys  *os.File // the terminal's keyboard; nil if the input is no terminal
	state *term.State
	past  map[string][]float64 // values by name of the chart
}

func newScreen(c *call) *screen {
	s := &screen{call: c, Style: show.NewStyle(c.stdout), past: map[string][]float64{}}
	if f, ok := c.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if state, err := term.MakeRaw(int(f.Fd())); err == nil {
			s.keys, s.state = f, state
		}
	}
	_, _ = io.WriteString(c.stdout, enterScreen) // show returns the error
	return s
}

func (s *screen) close() {
	_, _ = io.WriteString(s.stdout, leaveScreen)
	if s.keys != nil {
		_ = term.Restore(int(s.keys.Fd()), s.state) // there is nothing else to try
	}
}

// wait reads the keyboard meanwhile: q, Escape and Ctrl-C end.
func (s *screen) wait(ctx context.Context, d time.Duration) bool {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if ctx.Err() != nil || left <= 0 {
			return ctx.Err() != nil
		}
		if s.keys == nil {
			return pause(ctx, left) != nil
		}
		poll := []unix.PollFd{{Fd: int32(s.keys.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(min(left, minInterval).Milliseconds())+1)
		if err != nil || n == 0 {
			continue // interrupted, or no key
		}
		key := make([]byte, 16)
		if n, err := s.keys.Read(key); err != nil || strings.ContainsAny(string(key[:n]), "qQ\x1b\x03") {
			return true
		}
	}
}

func (s *screen) show(before, now *sample) error {
	width, height, err := term.GetSize(int(s.stdout.(*os.File).Fd())) // a terminal is a file
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	lines := s.lines(before, now)
	if len(lines) > height {
		lines = lines[:height]
	}
	fmt.Fprint(s.out, home) // Flush returns the error
	for i, line := range lines {
		end := eraseLine + "\r\n"
		if i == len(lines)-1 {
			end = eraseLine + eraseBelow
		}
		fmt.Fprint(s.out, clip(line, width), end)
	}
	return nil
}

// lines draws the screen.
func (s *screen) lines(before, now *sample) []string {
	r := ratesBetween(before, now)
	lines := []string{
		s.Bold(s.peerName()) + s.Dim("  up ") + age(now.number("serv_running_term")) + s.Dim("  connections ") + fmt.Sprint(now.number("serv_conn_count")) +
			s.Dim("  cpu ") + fmt.Sprintf("%.0f%%", r.cpu*percent) + s.Dim("  memory ") + size(now.number("sys_mem_rss")) + s.Dim("  q ends"),
		"",
		s.Bold(fmt.Sprintf("%-10s %10s %10s", "", "per second", "misses")),
	}
	for _, row := range []struct {
		name         string
		rate, misses float64
	}{{"set", r.set, r.setMiss}, {"get", r.get, r.getMiss}, {"remove", r.remove, r.removeMiss}, {"script", r.script, 0}, {"other", r.misc, 0}} {
		lines = append(lines, fmt.Sprintf("%-10s %10.0f %10.0f  ", row.name, row.rate, row.misses)+s.Accent(s.chart(row.name, row.rate)))
	}
	lines = append(lines, "", s.Bold(fmt.Sprintf("%-4s %14s %10s  %s", "", "records", "size", "database")))
	for i, d := range now.databases() {
		lines = append(lines, fmt.Sprintf("%-4d %14.0f %10s  %s", i, d.count, size(d.size), printable(d.path)))
	}
	if names := now.others(); len(names) > 0 {
		lines = append(lines, "", s.Bold("replication"))
		for _, name := range names {
			lines = append(lines, s.Dim(fmt.Sprintf("%-28s ", strings.TrimPrefix(name, "repl_")))+printable(string(now.rows[name])))
		}
	}
	return lines
}

// chart adds a value to the chart of a name and draws the chart. The newest value is at the right,
// and the highest value has the full height.
func (s *screen) chart(name string, value float64) string {
	past := append(s.past[name], value)
	past = past[max(0, len(past)-history):]
	s.past[name] = past
	highest := 0.0
	for _, v := range past {
		highest = max(highest, v)
	}
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range past {
		level := 0
		if v > 0 {
			level = 1 + int(v/highest*float64(len(blocks)-2))
		}
		b.WriteRune(blocks[level])
	}
	return b.String()
}

// age formats a number of seconds for people.
func age(seconds float64) string {
	d := time.Duration(seconds) * time.Second
	if days := d / (24 * time.Hour); days > 0 {
		return fmt.Sprintf("%dd%s", days, d%(24*time.Hour))
	}
	return d.String()
}

// clip cuts a line to a number of columns. Escape sequences take no column.
func clip(line string, width int) string {
	columns := 0
	for i := 0; i < len(line); {
		if line[i] == '\x1b' {
			end := strings.IndexByte(line[i:], 'm')
			if end < 0 {
				return line[:i]
			}
			i += end + 1
			continue
		}
		_, n := utf8.DecodeRuneInString(line[i:])
		if columns++; columns > width {
			return line[:i] + "\x1b[0m"
		}
		i += n
	}
	return line
}

// printable replaces control characters, so that a name chosen by others cannot steer the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

package memcache

import (
	"gotycoon/db"
	"gotycoon/internal/netio"
)

const (
	maxValue   = 1 << 28            // bytes of a value that a client may send
	maxRequest = maxValue + 1<<20   // bytes of a request
	maxLine    = 8191               // characters of a line, as in the original
	longLine   = 1 << 20            // the same in modern servers, for long lists of keys
	largeValue = 1 << 20            // from this size on data are stored from where they are
	keepRoom   = 64 << 10           // larger scratch space is not kept
	flushSize  = 256 << 10          // replies to one command are sent when they reach this size
	binaryByte = byte(requestMagic) // begins a request of the binary protocol
)

// base is what all parts of a connection know.
type base struct {
	s      *Server
	db     *db.DB
	io     *netio.Conn
	modern bool
}

// conn is one connection. It belongs to one goroutine. wire reads requests and writes replies;
// storage works on items and messages.
type conn struct {
	wire
	storage
	peer  string
	asked asked // the request in execution, for owed.Rights
}

// run serves the requests of the connection, one after the other.
func (c *conn) run() {
	for c.io.WaitByte() == nil {
		if c.serveOne() {
			c.trim()
			continue
		}
		_ = c.io.Flush() // the connection ends anyway
		return
	}
}

// serveOne serves one request, of which the first byte is there. It reports whether the connection
// stays open.
func (c *conn) serveOne() bool {
	if c.modern && c.io.Buffered()[0] == binaryByte {
		return c.serveBinary()
	}
	if !c.readLine() {
		return false
	}
	// A web page has sent this request: the lines of its body must not be taken for commands.
	if c.fromBrowser() || !c.weighLine() {
		return false
	}
	c.split()
	keep := c.execute()
	c.measureText()
	return keep
}

// trim drops scratch space that is too large to keep.
func (c *conn) trim() {
	if cap(c.value) > keepRoom {
		c.value = nil
	}
	c.held = 0 // given back with the request
	if cap(c.line) > keepRoom {
		c.line, c.words = nil, nil
	}
}

// command is a row of the table of commands.
type command struct {
	name   string
	least  int              // least number of words, with the command's own
	writes bool             // refused with opts=r
	run    func(*conn) bool // reports whether the connection stays
}

// Replies of several commands.
const (
	replyError    = "ERROR"
	replyWords    = "CLIENT_ERROR invalid parameters"
	replyFormat   = "CLIENT_ERROR bad command line format"
	replyReadOnly = "SERVER_ERROR server is read-only"
	replyNotFound = "NOT_FOUND"
	replyStored   = "STORED"
	replyNot      = "NOT_STORED"
	replyExists   = "EXISTS"
	replyMemory   = "SERVER_ERROR out of memory"
)

// classic returns the commands of the original's plug-in.
func classic() []command {
	return []command{
		{"add", 5, true, func(c *conn) bool { return textStore(c, modeAdd) }},
		{"decr", 3, true, func(c *conn) bool { return textArithmetic(c, true) }},
		{"delete", 2, true, textDelete},
		{"flush_all", 1, true, textFlush},
		{"get", 1, false, func(c *conn) bool { return textGet(c, false) }},
		{"gets", 1, false, func(c *conn) bool { return textGet(c, true) }},
		{"incr", 3, true, func(c *conn) bool { return textArithmetic(c, false) }},
		{"quit", 1, false, func(*conn) bool { return false }},
		{"replace", 5, true, func(c *conn) bool { return textStore(c, modeReplace) }},
		{"set", 5, true, func(c *conn) bool { return textStore(c, modeSet) }},
		{"stats", 1, false, textStats},
		{"version", 1, false, textVersion},
	}
}

// modern returns the further commands of memcached.
func modern() []command {
	return []command{
		{"append", 5, true, func(c *conn) bool { return textStore(c, modeAppend) }},
		{"cas", 6, true, func(c *conn) bool { return textStore(c, modeCAS) }},
		{"gat", 3, true, func(c *conn) bool { return textGetAndTouch(c, false) }},
		{"gats", 3, true, func(c *conn) bool { return textGetAndTouch(c, true) }},
		{"ma", 2, true, metaArithmetic},
		{"md", 2, true, metaDelete},
		{"me", 2, false, metaDebug},
		{"mg", 2, false, metaGet},
		{"mn", 1, false, metaNoop},
		{"ms", 3, true, metaSet},
		{"prepend", 5, true, func(c *conn) bool { return textStore(c, modePrepend) }},
		{"touch", 3, true, textTouch},
		{"verbosity", 2, false, textVerbosity},
	}
}

// table returns the commands of a configuration, by name.
func table(cfg Config) map[string]*command {
	rows := classic()
	if cfg.Modern {
		rows = append(rows, modern()...)
	}
	byName := make(map[string]*command, len(rows))
	for i := range rows {
		if cfg.Queue && (rows[i].name == "get" || rows[i].name == "gets") {
			rows[i].least = 2
		}
		byName[rows[i].name] = &rows[i]
	}
	return byName
}

// execute runs the command in words. It reports whether the connection stays open.
func (c *conn) execute() bool {
	c.quiet = false
	if len(c.words) == 0 {
		c.logCommand(nil)
		c.say(replyError)
		return true
	}
	c.logCommand(c.words[0])
	if c.io.Visitor != nil {
		if done, keep := (owner{c}).guard(); done {
			return keep
		}
		c.asked, c.io.Owed.Rights = asked{}, owner{c}
	}
	row, known := c.s.commands[string(c.words[0])]
	switch {
	case !known:
		c.say(replyError)
		return true
	case row.writes && c.s.opts.ReadOnly:
		c.say(replyReadOnly)
		return true
	case len(c.words) < row.least:
		c.say(replyWords)
		return true
	}
	return row.run(c)
}

// logCommand logs a command, as the original does.
func (c *conn) logCommand(word []byte) {
	if c.s.logs() {
		c.s.info("(%s): %s", c.peer, word)
	}
}

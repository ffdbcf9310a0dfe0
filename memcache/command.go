package memcache

import (
	"errors"
	"slices"

	"gotycoon/internal/browser"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// Run implements portserver.Service.
func (c *conn) Run() (rests bool) {
	for {
		if err := c.io.WaitByte(); err != nil {
			return errors.Is(err, netio.ErrRests)
		}
		if c.serveOne() {
			c.trim()
			continue
		}
		_ = c.io.Flush() // the connection ends anyway
		return false
	}
}

// misled tells a client that speaks HTTP or TLS what the port speaks. The connection ends.
func (c *conn) misled(head []byte) (keep bool) {
	reply, line := browser.Misled(head, "memcached's protocol")
	c.io.Out = append(c.io.Out, reply...)
	c.s.info("(%s): %s", c.peer, line)
	return false
}

// serveOne serves one request, of which the first byte is there. It reports whether the connection
// stays open.
func (c *conn) serveOne() bool {
	if c.modern && c.io.Buffered()[0] == requestMagic {
		return c.serveBinary()
	}
	if head := c.io.Buffered(); browser.IsHandshake(head) {
		return c.misled(head)
	}
	if !c.readLine() {
		return false
	}
	// A web page has sent this request: the lines of its body must not be taken for commands.
	if c.fromBrowser() {
		return c.misled(c.line)
	}
	if !c.weighLine() {
		return false
	}
	c.split()
	keep := c.execute()
	c.measureText()
	if c.io.Owes() {
		c.io.Answered(c.unconfirmed())
	}
	return keep
}

// unconfirmed returns what is sent instead of the reply to a command when other servers do not
// confirm what the reply tells. The quiet forms of meta commands leave out successes only.
func (c *conn) unconfirmed() netio.Instead {
	quiet := c.quiet && len(c.words) > 0 && !isMeta(c.words[0])
	return func(dst []byte, err error) []byte {
		if quiet {
			return dst
		}
		return append(dst, "SERVER_ERROR "+reason(err)+"\r\n"...)
	}
}

// isMeta reports whether a word is a meta command, such as mg and ms.
func isMeta(word []byte) bool { return len(word) == 2 && word[0] == 'm' }

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
	row, known := c.commands[string(c.words[0])]
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
	case c.s.opts.Forward != nil && c.belongs(row) && c.moveText():
		return false
	}
	return row.run(c)
}

// measureText counts the command in words.
func (c *conn) measureText() {
	if !c.io.Meter.Wanted() {
		return
	}
	d := metrics.Detail{In: len(c.line), Out: len(c.io.Out)}
	word := ""
	if len(c.words) > 0 {
		word = string(c.words[0])
	}
	if len(c.words) > 1 {
		d.Key = c.words[1]
	}
	if keys := c.bulk(word); len(keys) > 0 && c.io.Meter.Detailed() {
		d.Bulk, d.Key = true, keys[0]
		d.Protocol, d.Command, d.Database = c.s.opts.Requests, c.s.places[word], c.db.Name()
		c.io.Meter.Keys(d, slices.Values(keys))
	}
	c.measure(word, d)
}

// bulk returns the keys of a command that takes any number of them.
func (c *conn) bulk(word string) [][]byte {
	switch word {
	case "get", "gets":
		return c.words[1:]
	case "gat", "gats":
		return c.words[min(2, len(c.words)):]
	}
	return nil
}

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

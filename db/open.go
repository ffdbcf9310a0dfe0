package db

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/engine/gather"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/memstore"
	"gotycoon/db/ordered"
	"gotycoon/db/plugged"
	"gotycoon/db/store"
	"gotycoon/internal/rescue"
)

// Open opens the databases of the expressions, in order, and brings file databases up to date from
// their logs. The error is an *OpenError for a database or a *LogError for a log.
func Open(exprs []string, o Options) (*Catalog, error) {
	o.setDefaults()
	c := &Catalog{opts: o, names: map[string]*DB{}, failed: make(chan struct{}), collects: make(chan struct{}, 1)}
	c.View = &View{c}
	if o.Shared != nil {
		o.Gather.Persistent = map[uint16]bool{}
		for i, raw := range exprs {
			o.Gather.Persistent[uint16(i)] = expr.ParseShared(raw).Params.Persistent
		}
		c.groups = gather.New(o.Shared, o.Gather)
		c.claims.init()
		c.lanes.large = make(chan struct{}, largeScans)
		c.copies = newCopies(&c.opts)
	}
	start := &opening{Catalog: c}
	if err := start.openAll(exprs); err != nil {
		start.abandon()
		return nil, err
	}
	if c.copies != nil {
		c.clearCopies()
	}
	c.quit = make(chan struct{})
	for what, work := range map[string]func(){
		"work of the databases in the background":      c.keep,
		"the removal of expired records":               c.collect,
		"the removal of expired records of the engine": c.sweepShared,
		"the care for claimed records of the engine":   c.tendClaims,
	} {
		c.background.Go(func() { _ = rescue.Do(c.opts.Logger, what, work) })
	}
	return c, nil
}

func (c *opening) openAll(exprs []string) error {
	if c.opts.LogDir != "" {
		c.opts.Opening("log", c.opts.LogDir)
		log, err := c.prepareLog(c.opts.LogDir, c.opts.LogLimit)
		if err != nil {
			return err
		}
		c.log = log
	}
	first := uint16(0)
	if c.opts.Offline != nil {
		first = c.opts.Offline.DBID
	}
	for i, raw := range exprs {
		d, err := c.openDB(raw, first+uint16(i))
		if err != nil {
			return err
		}
		c.dbs = append(c.dbs, d)
		c.names[d.expr.Name] = d
	}
	if c.opts.Services != "" {
		if _, err := c.openDB(c.opts.Services, ServicesIndex); err != nil {
			return err
		}
	}
	if err := c.decide(); err != nil {
		return err
	}
	c.decided = true
	if err := c.beginShared(); err != nil {
		return err
	}
	if err := c.recover(); err != nil {
		return err
	}
	for _, d := range c.all { // now: the log may have had more lines
		if err := d.lines.findEnd(d.store); err != nil {
			return d.openError(systemError(err))
		}
		d.info = d.describe()
	}
	return nil
}

// beginShared begins the shared log, if there is one.
func (c *opening) beginShared() error {
	if c.log == nil {
		return nil
	}
	if err := c.log.begin(); err != nil {
		return err
	}
	for _, d := range c.all {
		d.log, d.sharesLog, d.begun = c.log.Log, true, c.log.Last()
	}
	return c.nameDatabases()
}

// nameDatabases notes in the shared log which number each database has. A tool has only some of the
// databases, under any numbers.
func (c *opening) nameDatabases() error {
	if c.opts.Offline != nil {
		return nil
	}
	var names []string
	for _, d := range c.dbs {
		names = append(names, d.expr.Name)
	}
	changed, err := c.log.NameDatabases(names)
	if err != nil {
		return &dberr.LogError{Dir: c.log.Dir(), Err: err}
	}
	for _, r := range changed {
		text := fmt.Sprintf("the database with the number %d in the update log was %s until now, and is %s from now on", r.Number, r.Before, r.Name)
		if r.Moved {
			c.opts.Logger.Warn(text + ": followers, and recovery from the log, go by the number")
		} else { // a file that has another name now
			c.opts.Logger.Info(text)
		}
	}
	return nil
}

// openDB opens one database without bringing it up to date.
func (c *opening) openDB(raw string, index uint16) (*DB, error) {
	c.opts.Opening("database", raw)
	d, err := c.newDB(raw, index)
	if err != nil {
		return nil, &dberr.OpenError{Expr: raw, Err: err}
	}
	c.all = append(c.all, d)
	return d, nil
}

func (c *opening) newDB(raw string, index uint16) (*DB, error) {
	e, err := c.parse(raw, index)
	if err != nil {
		return nil, err
	}
	d := &DB{core{form: form{expr: e, index: index, now: c.opts.Now, maxKey: maxMemoryKey},
		sid: c.opts.SID, logger: c.opts.Logger, readOnly: c.opts.ReadOnly, gate: &c.gate}}
	if c.groups != nil && index != ServicesIndex {
		if err := c.share(d); err != nil {
			return nil, err
		}
	}
	d.recovery = &recovery{core: &d.core}
	d.stripes.init(e.Kind == expr.Text)
	if err := c.openStore(d); err != nil {
		return nil, err
	}
	d.lines, d.versions.file = newLines(&d.form), d.file
	d.sweeper.init(&d.core, c.collects, d.file != nil)
	if index != ServicesIndex {
		d.guard = &c.guard
	} else if d.vital = c.opts.Vital; d.vital == nil {
		d.vital = func([]byte) bool { return true }
	}
	return d, nil
}

// maxMemoryKey is no limit of its own: requests are smaller.
const maxMemoryKey = math.MaxInt32

// openStore opens the place where the records of d live.
func (c *opening) openStore(d *DB) error {
	if err := d.expr.VersionsPossible(); err != nil {
		return err
	}
	if d.shared != nil {
		d.store = &sharedStore{d.shared}
		return nil
	}
	p := &d.expr.Params
	var s store.Store
	switch d.expr.Kind {
	case expr.Plugged:
		return c.openPlugged(d)
	case expr.ProtoHash, expr.Stash:
		s = memstore.NewHash(memstore.HashOptions{})
	case expr.Cache:
		s = memstore.NewCache(memstore.CacheOptions{CapCount: p.CapCnt, CapSize: p.CapSiz})
	case expr.ProtoTree, expr.Grass:
		s = memstore.NewTreeStore()
	default:
		return c.openFile(d)
	}
	d.store = ordered.New(s, p.RComp)
	return nil
}

// openFile opens a database file. Whether the file was created persistent is written in the file,
// and overrides the expression.
func (c *opening) openFile(d *DB) error {
	p := &d.expr.Params
	f, err := filestore.Open(d.path(), filestore.Options{
		ReadOnly:   c.opts.ReadOnly,
		TryLock:    c.opts.TryLock,
		Persistent: p.Persistent,
		Limit:      c.opts.CheckpointSize,
		LWW:        p.LWW,
		Removals:   c.opts.Removals,
		Background: c.opts.Background,
		Logger:     c.opts.Logger,
	})
	if err != nil {
		return openError(err)
	}
	if f.LWW() && p.RComp != expr.Lexical {
		return errors.Join(expr.ErrNoVersions, f.Abandon())
	}
	p.Persistent = f.Meta().Persistent
	d.file, d.store = f, ordered.New(f, p.RComp)
	d.maxKey = filestore.MaxKeySize - ordered.KeyPrefix(p.RComp)
	return nil
}

// share makes an engine the place where the records of d live.
func (c *opening) share(d *DB) error {
	p := &d.expr.Params
	for name, given := range map[string]bool{"ktcapcnt": p.KTCapCnt >= 0, "ktcapsiz": p.KTCapSiz >= 0} {
		if given {
			return &dberr.Error{Code: dberr.InvalidOperation, Message: name + " needs a database of the server's own, not one in an engine that servers share"}
		}
	}
	d.shared = &shared{db: &d.core, engine: c.opts.Shared, groups: c.groups, lanes: &c.lanes, claims: &c.claims, copies: c.copies}
	d.maxKey = c.opts.Shared.Limits().Key
	d.now = func() time.Time { return time.Unix(c.opts.Shared.Now(), 0) }
	return nil
}

// parse parses the expression of a database.
func (c *opening) parse(raw string, index uint16) (expr.Expr, error) {
	switch {
	case index == ServicesIndex:
		return expr.Parse(raw)
	case c.groups != nil:
		return expr.ParseShared(raw), nil
	case c.opts.Engine != nil:
		return expr.ParsePlugged(raw), nil
	}
	return expr.Parse(raw)
}

// openPlugged opens the store of a plugged database.
func (c *opening) openPlugged(d *DB) error {
	s, err := c.opts.Engine.Open(d.expr.Raw, plugged.Options{ReadOnly: d.readOnly})
	if err != nil {
		return openError(err)
	}
	d.store = s
	if c.opts.Engine.Void {
		d.readOnly = false
	}
	return nil
}

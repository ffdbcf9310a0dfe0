package pg

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// format is the version of the tables and functions.
const format = "6"

// Setup is what is decided once for all servers.
type Setup struct {
	SID       uint16   // the server ID of all servers
	Log       bool     // the engine keeps a log
	Databases []string // their names, in the order of their indexes; #ktopts=p behind a name: records never expire
}

// meta is what the table meta has.
type meta struct {
	Setup
	id [16]byte // of the log
}

// Status is what an engine says of itself.
type Status struct {
	Setup
	LogID      [16]byte
	Version    string // of PostgreSQL
	Standby    bool   // nothing can be written here
	ReadOnly   bool   // ... or default_transaction_read_only is on, for all or for the role
	Link       string // how the connection is protected, in words
	Durability string // what an acknowledgement is worth, in words
	Weak       bool   // ... less than a crash of one machine asks for
	Public     bool   // every role of this PostgreSQL may connect to the database
	Lanes      int64  // that were given out, of MaxLanes
	LogBytes   int64
	LogOldest  engine.Stamp // up to which the log was removed
	LogNewest  engine.Stamp
	Records    []int64 // of each database
	Bytes      []int64
}

// PublicWarning says what Status.Public means. Advisory locks and notifications have no owner: who
// is connected to the database can take any lock, keep it, and send any notification.
const PublicWarning = "every role of this PostgreSQL may connect to the database, and so may stop all servers by taking their locks, and send signals: " +
	"'REVOKE ALL ON DATABASE … FROM PUBLIC' ends that"

// MaxLanes is how many lanes there can ever be.
const MaxLanes = 1<<20 - 2

// lanesLost is how many lanes Renew leaves out. A server takes one to six of them when it starts.
const lanesLost = 1000

// ErrNotSetUp is the error where gotycoon has never been set up.
var ErrNotSetUp = errors.New("there is no gotycoon in this PostgreSQL database: 'ktutilmgr engine init URL' sets it up")

// connect connects to a URL for a command.
func connect(ctx context.Context, url string, readOnly bool) (*pgx.Conn, error) {
	pool, err := configure(url, readOnly)
	if err != nil {
		return nil, err
	}
	c, err := connectTo(ctx, pool.ConnConfig)
	if err != nil {
		return nil, err
	}
	if err := pool.AfterConnect(ctx, c); err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	return c, nil
}

// Init sets up gotycoon at a URL. Where it was set up before, nothing changes: made is false, and
// an error says what is different.
func Init(ctx context.Context, url string, s Setup) (made bool, err error) {
	c, err := connect(ctx, url, false)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	tx, err := c.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // has no effect behind Commit
	if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock($1, 0)", classCreate); err != nil {
		return false, err
	}
	have, err := readMeta(ctx, tx)
	if err == nil {
		return false, have.differs(s)
	}
	if !errors.Is(err, ErrNotSetUp) {
		return false, err
	}
	if _, err := tx.Exec(ctx, sql(schemaSQL, 0), pgx.QueryExecModeSimpleProtocol); err != nil {
		return false, err
	}
	names, err := json.Marshal(s.Databases)
	if err != nil {
		return false, err
	}
	values := [][]any{
		{"format", format}, {"log", strconv.FormatBool(s.Log)}, {"id", newID()}, {"sid", strconv.Itoa(int(s.SID))}, {"names", string(names)},
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"meta"}, []string{"name", "value"}, pgx.CopyFromRows(values)); err != nil {
		return false, err
	}
	for db := range s.Databases {
		if _, err := tx.Exec(ctx, sql(tableSQL, uint16(db)), pgx.QueryExecModeSimpleProtocol); err != nil {
			return false, err
		}
	}
	return true, tx.Commit(ctx)
}

func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	return hex.EncodeToString(id)
}

// differs returns in what another setup is another one.
func (m *meta) differs(s Setup) error {
	switch {
	case m.SID != s.SID:
		return fmt.Errorf("the engine was set up with the server ID %d, not %d", m.SID, s.SID)
	case m.Log != s.Log:
		return fmt.Errorf("the engine was set up with log=%v, not %v", m.Log, s.Log)
	case fmt.Sprint(m.Databases) != fmt.Sprint(s.Databases):
		return fmt.Errorf("the engine was set up with the databases %q, not %q", m.Databases, s.Databases)
	}
	return nil
}

// readMeta reads what was decided. The error is ErrNotSetUp, or says that the version is another,
// or that the schema is not ours. Everything begins with it.
func readMeta(ctx context.Context, c asker) (m meta, err error) {
	if err := trust(ctx, c); err != nil {
		return m, err
	}
	rows, err := c.Query(ctx, "SELECT name, value FROM gotycoon.meta")
	if err != nil {
		return m, mean(err, false)
	}
	values, name, value := map[string]string{}, "", ""
	if _, err := pgx.ForEachRow(rows, []any{&name, &value}, func() error { values[name] = value; return nil }); err != nil {
		return m, mean(err, false)
	}
	if values["format"] != format {
		return m, fmt.Errorf("the engine's tables have the format %q, and this version of gotycoon has %q: use the version that set it up", values["format"], format)
	}
	sid, err := strconv.ParseUint(values["sid"], 10, 16)
	if err != nil {
		return m, fmt.Errorf("the engine's table meta: sid: %w", err)
	}
	id, err := hex.DecodeString(values["id"])
	if err != nil || len(id) != 16 {
		return m, fmt.Errorf("the engine's table meta: the log's ID is %q", values["id"])
	}
	m.SID, m.Log, m.id = uint16(sid), values["log"] == "true", [16]byte(id)
	if err := json.Unmarshal([]byte(values["names"]), &m.Databases); err != nil {
		return m, fmt.Errorf("the engine's table meta: names: %w", err)
	}
	for _, name := range m.Databases {
		if strings.ContainsAny(name, "/\x00") { // files are called after databases
			return m, fmt.Errorf("the engine's table meta: names: a database is called %q", name)
		}
	}
	return m, nil
}

// Setup returns what was decided by Init.
func (e *Engine) Setup() Setup { return e.meta.Setup }

// ReadStatus returns the state of the engine at a URL, which may be a standby.
func ReadStatus(ctx context.Context, url string) (Status, error) {
	c, err := connect(ctx, url, true)
	if err != nil {
		return Status{}, err
	}
	defer c.Close(ctx)
	return readStatus(ctx, c)
}

// Status returns the state of the engine.
func (e *Engine) Status(ctx context.Context) (s Status, err error) {
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		s, err = readStatus(ctx, c.Conn())
		return err
	})
	return s, err
}

func readStatus(ctx context.Context, c *pgx.Conn) (s Status, err error) {
	m, err := readMeta(ctx, c)
	if err != nil {
		return s, err
	}
	s.Setup, s.LogID, s.Link = m.Setup, m.id, protection(c)
	var commit, standbys, fsync string
	err = c.QueryRow(ctx, `SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('synchronous_commit'),
		current_setting('synchronous_standby_names'), current_setting('fsync'),
		(SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM gotycoon.lanes),
		pg_total_relation_size('gotycoon.groups_0') + pg_total_relation_size('gotycoon.groups_1') + pg_total_relation_size('gotycoon.groups_2'),
		(SELECT trimmed FROM gotycoon.rotation), (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM gotycoon.stamps),
		has_database_privilege('public', current_database(), 'CONNECT'), current_setting('default_transaction_read_only')::bool`,
	).Scan(&s.Version, &s.Standby, &commit, &standbys, &fsync, &s.Lanes, &s.LogBytes, &s.LogOldest, &s.LogNewest, &s.Public, &s.ReadOnly)
	if err != nil {
		return s, err
	}
	s.Durability, s.Weak = durability(commit, standbys, fsync)
	for db := range s.Databases {
		var records, bytes int64
		if err := c.QueryRow(ctx, countSQL, db, fmt.Sprintf("gotycoon.r%d", db)).Scan(&records, &bytes); err != nil {
			return s, err
		}
		s.Records, s.Bytes = append(s.Records, records), append(s.Bytes, bytes)
	}
	return s, nil
}

// protection says how a connection is protected.
func protection(c *pgx.Conn) string {
	link, config := c.PgConn().Conn(), c.Config().TLSConfig
	encrypted, is := link.(*tls.Conn)
	switch {
	case !is && link.RemoteAddr().Network() == "unix":
		return "a Unix socket"
	case !is:
		return "not encrypted"
	}
	text := "encrypted, " + tls.VersionName(encrypted.ConnectionState().Version)
	switch {
	case config == nil || config.InsecureSkipVerify && config.VerifyPeerCertificate == nil:
		return text + ", but anybody could be at the other end: sslmode=verify-full checks that"
	case config.InsecureSkipVerify:
		return text + ", the certificate is checked, its name is not"
	}
	return text + ", certificate and name are checked"
}

// durability says what an acknowledgement of PostgreSQL is worth.
func durability(commit, standbys, fsync string) (text string, weak bool) {
	text = "as the engine's: synchronous_commit=" + commit
	if standbys == "" {
		text += ", no synchronous standby"
	} else {
		text += ", synchronous standbys: " + standbys
	}
	if fsync == "off" {
		text += ", fsync=off: the end of the engine's machine may lose everything"
	}
	if commit == "off" {
		text += ": a crash of the engine loses acknowledged updates"
	}
	return text, commit == "off" || fsync == "off"
}

// Renew gives the log another identity, after the engine was restored from a backup: followers may
// have updates that are not in it. It returns the new one. Numbers of lanes are left out that the
// engine may have given out in what it has lost: clients may remember revisions of those lanes.
// skipped is false where there are too few numbers left for that.
func Renew(ctx context.Context, url string) (id string, skipped bool, err error) {
	id = newID()
	err = change(ctx, url, func(c *pgx.Conn) error {
		if _, err := readMeta(ctx, c); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "UPDATE gotycoon.meta SET value = $1 WHERE name = 'id'", id); err != nil {
			return err
		}
		// the last ones are for servers
		tag, err := c.Exec(ctx, "SELECT setval('gotycoon.lanes', last_value + $1) FROM gotycoon.lanes WHERE last_value + 10 * $1 < $2", lanesLost, MaxLanes)
		skipped = tag.RowsAffected() == 1
		return err
	})
	return id, skipped, err
}

func change(ctx context.Context, url string, what func(c *pgx.Conn) error) error {
	c, err := connect(ctx, url, false)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return what(c)
}

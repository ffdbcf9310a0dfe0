package server

import (
	"log/slog"
	"net"
	"time"

	"gotycoon/internal/klog"
	"gotycoon/internal/vfs"
)

const (
	// memoryDatabase is the database of a server that is given none.
	memoryDatabase = ":"

	// MaxDatabases is how many databases a server can have open.
	MaxDatabases = 200

	// MaxThreads is the largest number of threads that is reported.
	MaxThreads = 64

	// NoServerID is the ServerID of a server that was not given one.
	NoServerID = -1

	maxServerID = 65535
)

// Config is everything a server can be told. DefaultConfig has the values of a server started
// without options; the options that set the fields are in parentheses. Nobody changes a Config
// while the server runs: the values that can change are copied into live.
type Config struct {
	Host    string        // address to listen on, a name or IPv4 (-host); empty: all addresses
	Port    int           // port to listen on (-port); 0: any free one, for tests
	Timeout time.Duration // of each wait for bytes of a request or for send space (-tout); above 0
	Threads int           // interpreters of the script, at most MaxThreads (-th); in reports

	LogPath   string      // log file, continued at its end (-log); empty or "-": standard output
	LogLevel  slog.Level  // least kind of lines, of package klog (-li, -ls, -le, -lz)
	LogFormat klog.Format // of the lines (-log-format)

	UpdateLog      string // directory (-ulog); empty: none, database files keep private logs
	UpdateLogLimit int64  // bytes of a segment (-ulim); 0: 256 MiB, below 0: unlimited
	Retention      RetentionConfig
	SyncInterval   time.Duration // the log is synced at least this often (-uasi); 0: every second
	ServerID       int           // origin of updates in the log, 0 to 65535 (-sid), or NoServerID

	MasterHost     string        // whose updates are pulled (-mhost); empty: a client may tell one
	MasterPort     int           // its port (-mport)
	MasterInterval time.Duration // that each update from it takes at least (-riv); 0: full speed
	RTSPath        string        // file of the position (-rts); empty: no replication, now or later

	Replication ReplicationConfig // what the replication of the original cannot do
	Sync        SyncConfig        // followers that confirm updates

	OnRole string // program that is told of the role (-on-role); empty: none

	ReadOnly bool // refuse updates (-ord)
	SyncEach bool // acknowledge an update after it is on the disk (-oas)
	TryLock  bool // do not wait for a file that another process has locked (-otl)
	NoRepair bool // refuse a log with an incomplete end (-onr)
	AsIs     bool // open files without acknowledged updates that only their own logs have (-as-is)

	CheckpointSize int64 // bytes of updates that start a checkpoint (-checkpoint); 0: default

	// A file is compacted that is more than so many times as large as it would be then
	// (-compact-ratio); 0: none is.
	CompactRatio float64

	AutoSync     time.Duration // synchronize all databases this often (-asi); 0: never
	AutoSyncHard bool          // down to the disk (-ash)

	Daemon  bool   // detach from the terminal (-dmn)
	PIDPath string // file that holds the process ID while the server runs (-pid); empty: none
	CmdDir  string // directory of the commands that synchronize may run (-cmd)

	Snapshots SnapshotConfig // of all databases

	Plugins PluginConfig // the memcached protocol, and other engines
	Engine  EngineConfig // of an engine that several servers share

	Script ScriptConfig // procedures in Lua

	Services ServicesConfig // further protocols on ports of their own

	Access AccessConfig // who may do what
	TLS    TLSConfig    // of all ports, and of the connection to a master

	Forward bool // pass updates on to the primary (-forward)

	Cluster ClusterConfig // whose members elect the primary

	Members MemberConfig // how the servers of a cluster know each other

	Admin AdminConfig // metrics and probes

	Databases []string // path expressions

	// Now is the clock of records and logs; nil means time.Now. Tests set it back.
	Now func() time.Time

	// FS has the update log, and what a cluster remembers; nil means the system's. Tests have it
	// fail and hang.
	FS vfs.FS

	Limits LimitsConfig // of clients, memory and disk

	Reload ReloadConfig // what HUP has read again

	// Listening is called each time the server listens on all its ports, with the address of the
	// data port; nil: nobody wants to know.
	Listening func(net.Addr)

	// Tests fail the opening of a part, and hear of each part that is closed.
	opening func(part string) error
	closed  func(part string)
}

// ReloadConfig is where the configuration has come from.
type ReloadConfig struct {
	Settings []Setting // all options

	// Again reads everything again; nil: there is no file, and HUP means what it does in the
	// original. The configuration that it returns has Settings too.
	Again func() (Config, error)

	File string // the configuration file; empty: there is none

	// Change returns the options that can change while the server runs as they are in effect, but
	// one with another value; nil: no option can be changed.
	Change func(effective []Setting, name, value string) (Config, error)
}

// Setting is one option as it is in effect, for those who may look at the configuration.
type Setting struct {
	Name   string // of the option
	Value  string // as it is written; empty for a secret, and where there is none
	Source string // "command line", "environment", "FILE:LINE" or "default"
	Reload bool   // it can change while the server runs
	Secret bool   // its value is never shown
}

// sid returns the server's ID in replication and in the records of services.
func (c *Config) sid() uint16 { return uint16(max(c.ServerID, 0)) }

// DefaultConfig returns the configuration of a server started without options.
func DefaultConfig() Config {
	return Config{
		Port:       1978,
		Timeout:    30 * time.Second,
		Threads:    16,
		LogLevel:   slog.LevelDebug,
		ServerID:   NoServerID,
		MasterPort: 1978,
		Sync:       SyncConfig{Timeout: 5 * time.Second},
		CmdDir:     ".",
		Snapshots:  SnapshotConfig{Interval: 180 * time.Second},
		Retention:  RetentionConfig{SlaveTime: 2 * time.Minute},
		Limits:     defaultLimits(),
		Databases:  []string{memoryDatabase},
	}
}

package main

import (
	"log/slog"

	"gotycoon/internal/klog"
	"gotycoon/tools/cli"
)

// rows lists all options in the order of the help text. What an option does is explained here and
// nowhere else; what it means inside is explained at the fields of server.Config.
func (o *options) rows() []*option {
	levels := oneOf[slog.Level]{&o.LogLevel, []string{"debug", "info", "system", "error", "none"},
		[]slog.Level{slog.LevelDebug, slog.LevelInfo, klog.LevelSystem, slog.LevelError, klog.LevelSilent}}
	formats := oneOf[klog.Format]{&o.LogFormat, []string{"original", "text", "json"},
		[]klog.Format{klog.Original, klog.Text, klog.JSON}}
	return []*option{
		{name: "host", value: textValue(&o.Host),
			absent: "on all, but only clients on this machine are served",
			help:   "listen on this `address` only, a name or IPv4"},
		{name: "port", value: integer(&o.Port), standard: "1978",
			help: "listen on this port"},
		{name: "tout", value: cli.Duration(&o.Timeout), standard: "30", reload: true,
			help: "give up a client that keeps the server waiting for so many seconds within a " +
				"request"},
		{name: "th", value: integer(&o.Threads), standard: "16",
			help: "number of interpreters of the script, and of threads to report; connections never " +
				"wait for a thread"},

		{name: "log", value: textValue(&o.LogPath), section: "logging", absent: "standard output",
			help: "append log lines to a `file` instead of standard output"},
		{name: "log-format", value: formats, standard: "original", section: "logging",
			help: "write log lines in this `format`: original, text (KEY=VALUE) or json"},
		{name: "log-level", value: levels, standard: "debug", section: "logging", reload: true,
			help: "least `kind` of log lines: debug, info, system, error, none; -li, -ls, -le and -lz " +
				"set it too"},
		{name: "li", value: alias{o, "log-level", "info"}, section: "logging", reload: true,
			help: "log what happens to connections and requests, the server's life, and errors"},
		{name: "ls", value: alias{o, "log-level", "system"}, section: "logging", reload: true,
			help: "log the server's life and errors"},
		{name: "le", value: alias{o, "log-level", "error"}, section: "logging", reload: true,
			help: "log errors"},
		{name: "lz", value: alias{o, "log-level", "none"}, section: "logging", reload: true,
			help: "log nothing"},

		{name: "ulog", value: textValue(&o.UpdateLog), section: "update-log",
			absent: "private logs beside the files",
			help:   "keep an update log in a `directory`; needs -sid"},
		{name: "ulim", value: limit(&o.UpdateLogLimit), standard: "256m", section: "update-log",
			help: "begin a new file of the update log at this `size`, 0: never"},
		{name: "uasi", value: cli.Duration(&o.SyncInterval), standard: "1", section: "update-log",
			help: "send the update log to the disk every so many seconds"},
		{name: "ulog-keep-age", value: span{&o.Retention.Age}, section: "update-log", reload: true,
			absent: "however old",
			help: "remove a file of the update log when all in it is older than this `time`, such as " +
				"7d or 36h, and nobody needs it"},
		{name: "ulog-keep-size", value: cli.Size(&o.Retention.Size), section: "update-log",
			reload: true, absent: "any size",
			help: "remove the oldest files of the update log that nobody needs when all take more " +
				"than this `size`, such as 50g"},
		{name: "ulog-keep-count", value: integer(&o.Retention.Count), section: "update-log",
			reload: true, absent: "any number",
			help: "remove the oldest files of the update log that nobody needs when there are more"},
		{name: "ulog-slave-time", value: span{&o.Retention.SlaveTime}, section: "update-log",
			absent: "two minutes",
			help: "keep the update log for a slave that has gone for this `time`; one that comes back " +
				"later may have to fetch a copy"},
		{name: "ulog-slave-size", value: cli.Size(&o.Retention.SlaveSize), section: "update-log",
			absent: "any size",
			help: "keep no more than this `size` of the update log for one slave, which fetches a " +
				"copy then"},
		{name: "sid", value: integer(&o.ServerID), section: "update-log",
			help: "ID of this server in update logs, 0 to 65535"},

		{name: "mhost", value: textValue(&o.MasterHost), section: "replication",
			help: "replicate from the server with this `address`; needs -sid and -rts"},
		{name: "mport", value: integer(&o.MasterPort), standard: "1978", section: "replication",
			help: "its port"},
		{name: "rts", value: textValue(&o.RTSPath), section: "replication",
			help: "keep the time stamp up to which updates are replicated in a `file`; allows to " +
				"replicate"},
		{name: "riv", value: milliseconds(&o.MasterInterval), standard: "0",
			section: "replication", reload: true,
			help: "replicate one update in so many milliseconds at most, 0: as many as possible"},

		{name: "ord", value: switchValue(&o.ReadOnly), section: "files",
			help: "open databases for reading only"},
		{name: "oat", value: ignored{}, section: "files",
			help: "accepted: every update is a transaction"},
		{name: "oas", value: switchValue(&o.SyncEach), section: "files",
			absent: "when the operating system has it",
			help:   "have an update on the disk before it is acknowledged"},
		{name: "onl", value: ignored{}, section: "files",
			help: "accepted: database files are always locked"},
		{name: "otl", value: switchValue(&o.TryLock), section: "files",
			absent: "wait for 10 seconds",
			help:   "fail at once when another process has a file locked"},
		{name: "onr", value: switchValue(&o.NoRepair), section: "files", absent: "drop that update",
			help: "fail when a log ends in the middle of an update, instead of dropping it"},
		{name: "as-is", value: switchValue(&o.AsIs), section: "files", absent: "refuse to start",
			help: "open database files as they are, though acknowledged updates stay out that only " +
				"their own update logs have"},
		{name: "checkpoint", value: cli.Size(&o.CheckpointSize), section: "files", absent: "64m",
			help: "move updates into the database file when they take this `size` in memory"},
		{name: "compact-ratio", value: fraction(&o.CompactRatio), section: "files", reload: true, absent: "never",
			help: "compact a database file of 64 MiB or more when it is more than so many times as " +
				"large as it would be then, such as 2"},
		{name: "asi", value: cli.Duration(&o.AutoSync), section: "files", reload: true,
			absent: "at checkpoints",
			help:   "synchronize the databases every so many seconds"},
		{name: "ash", value: switchValue(&o.AutoSyncHard), section: "files", reload: true,
			help: "with -asi: down to the disk"},

		{name: "dmn", value: switchValue(&o.Daemon), section: "process",
			help: "run in the background; paths must be absolute"},
		{name: "pid", value: textValue(&o.PIDPath), section: "process",
			help: "keep the process ID in a `file` while the server runs"},
		{name: "cmd", value: textValue(&o.CmdDir), section: "process",
			help: "`directory` of the commands that clients may have run by synchronize"},

		{name: "bgs", value: textValue(&o.Snapshots.Dir), section: "snapshots",
			help: "keep snapshots of all databases in this `directory`, and load them at the start; " +
				"databases in memory live on in them"},
		{name: "bgsi", value: cli.Duration(&o.Snapshots.Interval), standard: "180",
			section: "snapshots", reload: true,
			help: "take one every so many seconds; 0 or less: only at the end"},
		{name: "bgsc", value: textValue(&o.Snapshots.Compressor), standard: "none",
			section: "snapshots",
			help:    "`compressor` of new ones: none, zlib, lzo, lzma, zstd or s2"},

		{name: "scr", value: textValue(&o.Script.Path), section: "script",
			help: "let clients call the functions of a Lua `file`; see docs/lua.md"},
		{name: "scrtime", value: cli.Duration(&o.Script.Time), section: "script",
			absent: "no limit",
			help:   "end a call of the script that takes longer than so many seconds"},
		{name: "scrmem", value: cli.Size(&o.Script.Memory), section: "script", absent: "no limit",
			help: "end a call of the script whose interpreter holds on to more than this `size`"},

		{name: "plsv", value: textValue(&o.Plugins.Server), section: "plugins",
			help: "run the plug-in server with this `file` name: ktplugservmemc.so, memcached's " +
				"protocol"},
		{name: "plex", value: textValue(&o.Plugins.Expr), section: "plugins",
			help: "its `configuration`, for example 'port=11211#opts=f'"},
		{name: "pldb", value: textValue(&o.Plugins.Database), section: "plugins",
			help: "keep all databases in this `engine`: postgres://…, which several servers share, or " +
				"a file name, ktplugdbvoid.so, which keeps nothing"},

		{name: "engine-timeout", value: cli.Duration(&o.Engine.Timeout), section: "engine", absent: "10",
			help: "refuse an operation that the engine of -pldb has not carried out after so many " +
				"seconds"},
		{name: "engine-lanes", value: integer(&o.Engine.Lanes), section: "engine", absent: "2",
			help: "how many groups of operations may be under way in the engine"},
		{name: "engine-group", value: integer(&o.Engine.Group), section: "engine", absent: "512",
			help: "how many operations a group may have"},
		{name: "engine-readers", value: integer(&o.Engine.Readers), section: "engine", absent: "4",
			help: "how many requests of reads may be under way in the engine"},
		{name: "engine-queue", value: integer(&o.Engine.Queue), section: "engine", absent: "65536",
			help: "refuse operations as busy while so many wait for the engine"},
		{name: "engine-queue-size", value: cli.Size(&o.Engine.QueueSize), section: "engine", absent: "64m",
			help: "and while what waits takes this `size`"},
		{name: "engine-log-age", value: span{&o.Engine.KeepAge}, section: "engine", absent: "1h",
			help: "how long the engine keeps its log of updates"},
		{name: "engine-log-size", value: cli.Size(&o.Engine.KeepSize), section: "engine", absent: "4g",
			help: "up to which `size` the engine keeps its log"},
		{name: "engine-wait", value: cli.Duration(&o.Engine.Wait), section: "engine", absent: "30",
			help: "wait so many seconds for the engine at the start"},
		{name: "engine-copies", value: textValue(&o.Engine.Copies), section: "engine", absent: "$TMPDIR or /var/tmp",
			help: "`directory` in which the files are made that commands of synchronize are given"},

		{name: "memcache-port", value: integer(&o.Plugins.MemcachePort), section: "memcache",
			help: "serve memcached clients on this port"},
		{name: "memcache-opts", value: textValue(&o.Plugins.MemcacheOptions), standard: "f",
			section: "memcache",
			help: "its options, `letters`: f keep flags, m all of today's commands, q message queue, " +
				"r read-only"},
		{name: "memcache-qtout", value: cli.Duration(&o.Plugins.MemcacheQueueTimeout),
			standard: "10", section: "memcache",
			help: "with q: get waits so many seconds for a message"},

		{name: "counter-port", value: integer(&o.Services.CounterPort), section: "counter",
			help: "serve counters on this port, as yrmcds does"},
		{name: "counter-max-connections", value: integer(&o.Services.CounterConns),
			section: "counter", absent: "any number",
			help: "their connections at most, 0: any number"},
		{name: "counter-buckets", value: integer(&o.Services.CounterBuckets),
			standard: "1000000", section: "counter",
			help: "size of their hash table"},
		{name: "counter-stats-interval", value: cli.Duration(&o.Services.CounterInterval),
			standard: "86400", section: "counter",
			help: "measure their maxima within so many seconds"},

		{name: "lock-port", value: integer(&o.Services.LockPort), section: "lock",
			help: "serve locks on this port, as JESync does"},
		{name: "lock-max-ttl", value: cli.Duration(&o.Services.LockTTL), section: "lock",
			absent: "no limit",
			help:   "longest time in seconds that a lock is held without renewal"},
		{name: "lock-max-keys", value: integer(&o.Services.LockKeys), standard: "1000000",
			section: "lock",
			help:    "keys that can be locked at a time"},
		{name: "lock-max-waiters", value: integer(&o.Services.LockWaiters), standard: "100000",
			section: "lock",
			help:    "requests that can wait at a time"},
		{name: "lock-strict", value: switchValue(&o.Services.LockStrict), section: "lock",
			help: "let no request for a lock overtake one that waits"},

		{name: "sequence-port", value: integer(&o.Services.SequencePort), section: "sequence",
			help: "give out sequence numbers on this port, as coconut does"},
		{name: "sequence-reserve", value: integer(&o.Services.Reserve), section: "sequence",
			absent: "0",
			help:   "their reserve field, 0 to 63"},
		{name: "sequence-server-no", value: integer(&o.Services.ServerNo), section: "sequence",
			absent: "0",
			help:   "their server_no field, 0 to 4095: no two servers may have the same"},

		{name: "quota-port", value: integer(&o.Services.QuotaPort), section: "quota",
			help: "manage quotas on this port, as coconut does"},
		{name: "quota-limit", value: cli.Int(&o.Services.Limit), section: "quota",
			help: "`amount` of the quota when it is used for the first time"},
		{name: "quota-export", value: textValue(&o.Services.Export), section: "quota",
			help: "write the journals of the quota to this `file` whenever it is used up"},

		{name: "services", value: textValue(&o.Services.Database), standard: "services.kct",
			help: "`database` file in which locks, sequences and quotas keep their state, or a copy " +
				"of the master's"},
		{name: "access", value: textValue(&o.Access.Path),
			absent: "everybody whom -host lets in may do everything",
			help: "let in whom this `file` names; without it and -host only clients on this machine; " +
				"see docs/security.md"},
		{name: "http-hosts", value: textValue(&o.Access.Hosts),
			help: "more `names` of this server, with commas, for browsers, and hosts whose pages may " +
				"send it requests; * for all"},

		{name: "tls-cert", value: textValue(&o.TLS.Cert), section: "tls", absent: "plaintext",
			help: "speak TLS on all ports, with the certificate in this `file`"},
		{name: "tls-key", value: textValue(&o.TLS.Key), section: "tls",
			help: "`file` of its private key"},
		{name: "tls-ca", value: textValue(&o.TLS.CA), section: "tls", absent: "not asked for",
			help: "ask clients for certificates that the authorities in this `file` have signed"},
		{name: "tls-client", value: textValue(&o.TLS.Client), section: "tls",
			help: "these certificates are `required` (default) or optional"},
		{name: "tls-crl", value: textValue(&o.TLS.CRL), section: "tls",
			help: "`file` of revocation lists of these authorities"},
		{name: "tls", value: textValue(&o.TLS.Mode), section: "tls",
			help: "TLS is `required` (default), or allowed: plaintext on the same ports too"},

		{name: "plain-port", value: integer(&o.TLS.PlainPort),
			help: "serve databases without TLS on this port too"},

		{name: "master-tls", value: switchValue(&o.TLS.MasterTLS), section: "master",
			absent: "plaintext",
			help:   "speak TLS with the master; implied by the following options"},
		{name: "master-tls-ca", value: textValue(&o.TLS.MasterCA), section: "master",
			help: "`file` of the authorities that vouch for the master (default: those of the system)"},
		{name: "master-tls-cert", value: textValue(&o.TLS.MasterCert), section: "master",
			help: "`file` of the certificate to show the master"},
		{name: "master-tls-key", value: textValue(&o.TLS.MasterKey), section: "master",
			help: "`file` of its private key"},
		{name: "master-tls-name", value: textValue(&o.TLS.MasterName), section: "master",
			help: "`name` in the certificate of the master (default: that of -mhost)"},

		{name: "forward", value: switchValue(&o.Forward), section: "replication",
			help: "as a follower, pass updates of clients on to the primary, with their connections; see " +
				"docs/forwarding.md"},

		{name: "cluster", value: textValue(&o.Cluster.Name), section: "cluster",
			help: "make this server a member of the cluster with this `name`, whose members elect the " +
				"primary among themselves; see docs/cluster.md"},
		{name: "members", value: textValue(&o.Cluster.Members), section: "cluster",
			help: "the servers of a new cluster: HOST:PORT[/witness],...; the same `list` on all of them"},
		{name: "advertise", value: textValue(&o.Cluster.Advertise), section: "cluster",
			absent: "that of the members which has an address of this machine and this port",
			help:   "`address` HOST:PORT by which the other members reach this server"},
		{name: "join", value: switchValue(&o.Cluster.Join), section: "cluster",
			help: "wait until a cluster adds this server (ktremotemgr cluster add); needs -advertise"},
		{name: "cluster-etcd", value: textValue(&o.Cluster.Etcd), section: "cluster",
			absent: "the members vote among themselves",
			help: "have the etcd with this `address` decide who leads: " +
				"http://a:2379,b:2379/prefix"},
		{name: "cluster-dir", value: textValue(&o.Cluster.Dir), section: "cluster",
			absent: "that of -ulog with .cluster behind it",
			help:   "keep in this `directory` what the election must remember"},
		{name: "election-timeout", value: cli.Duration(&o.Cluster.Timeout), section: "cluster",
			absent: "1, with an etcd 2.5",
			help: "replace a primary that is not heard of for so many seconds; the same on all " +
				"members"},
		{name: "disk-timeout", value: cli.Duration(&o.Cluster.DiskTimeout), section: "cluster",
			absent: "four times -election-timeout, and at least 10",
			help: "hand over to another member when the disk of the primary's update log has done " +
				"nothing for so many seconds although updates wait for it"},
		{name: "cluster-secret", value: textValue(&o.Members.Secret), section: "cluster",
			absent: "members show certificates",
			help: "`file` of the secret by which the servers of a cluster know each other, 32 characters " +
				"or more; read again when it changes"},

		{name: "gap-continue", value: switchValue(&o.Replication.GapContinue),
			section: "replication",
			help: "go on when a master of the original kind has not kept all updates that are needed, " +
				"instead of stopping to replicate"},
		{name: "copy-limit", value: cli.Size(&o.Replication.CopyLimit), section: "replication",
			absent: "no limit",
			help: "fetch at most this `size` per second while databases are copied from the master, " +
				"0: as much as possible"},
		{name: "removals", value: cli.Int(&o.Replication.Removals), section: "replication",
			absent: "a million",
			help: "remember at most this `number` of removals in each file with lww=true, 0: a " +
				"million; older ones are forgotten"},
		{name: "sync-replicas", value: integer(&o.Sync.Replicas), section: "replication",
			absent: "0",
			help: "answer an update when so many followers have it (`number`), and a reader of an " +
				"update too; needs -ulog; see docs/replication.md"},
		{name: "sync-timeout", value: cli.Duration(&o.Sync.Timeout), standard: "5",
			section: "replication",
			help: "wait so many seconds for followers; then tell the client that the update is not " +
				"confirmed, and refuse updates until enough followers are there"},
		{name: "sync-degrade", value: switchValue(&o.Sync.Degrade), section: "replication",
			help: "answer updates without the followers after -sync-timeout, instead of refusing them"},
		{name: "slave-read-only", value: switchValue(&o.Replication.ReadOnly),
			section: "replication",
			help:    "refuse updates of clients, but not those of the master; tunerepl -rw ends it"},
		{name: "on-role", value: textValue(&o.OnRole), section: "replication",
			help: "run this `program` when the server has started, and when it becomes primary, replica " +
				"or none of them; see docs/roles.md"},

		{name: "admin", value: textValue(&o.Admin.Addr),
			help: "serve metrics, probes and profiles by HTTP on this `address`, HOST:PORT"},
		{name: "ready-lag", value: cli.Duration(&o.Admin.ReadyLag), standard: "0",
			help: "report as not ready when so many seconds behind the master, 0: never"},
		{name: "console-read-only", value: switchValue(&o.Admin.ConsoleReadOnly),
			help: "let nobody change anything with the console of the admin listener"},
		{name: "slow", value: span{&o.Admin.Slow},
			help: "log requests that take longer than this `time`: seconds, or with a unit as in 10ms"},
		{name: "sample", value: integer(&o.Admin.Sample),
			help: "with -li: log one of so many requests instead of each"},

		{name: "max-connections", value: integer(&o.Limits.Conns), section: "limits",
			absent: "by memory and open files",
			help:   "connections of each port at most, 0: what memory and open files allow"},
		{name: "max-watches", value: integer(&o.Limits.Watches), standard: "1000", section: "limits",
			help: "clients at most that are told of changes as they happen; one client may have as many " +
				"as are left for others"},
		{name: "max-request", value: cli.Size(&o.Limits.Request), section: "limits",
			reload: true, absent: "by protocol",
			help: "refuse requests larger than this `size`, 0: what each protocol allows"},
		{name: "max-inflight", value: cli.Size(&o.Limits.InFlight), section: "limits",
			reload: true, absent: "by memory",
			help: "`size` that the requests of all connections may hold together, unread replies " +
				"included, 0: three eighths of the memory that the process may have"},
		{name: "request-time", value: cli.Duration(&o.Limits.RequestTime), standard: "60",
			section: "limits", reload: true,
			help: "end a request that takes longer than so many seconds to arrive, and one more for " +
				"each KiB (large ones: ten minutes more at most); 0: never"},
		{name: "answer-time", value: cli.Duration(&o.Limits.AnswerTime), standard: "300",
			section: "limits", reload: true,
			help: "end a search, a script's call or the like that takes longer than so many seconds; " +
				"0: never"},
		{name: "idle", value: cli.Duration(&o.Limits.Idle), standard: "0", section: "limits",
			reload: true,
			help:   "end a connection that sends no request for so many seconds, 0: never"},
		{name: "memory", value: cli.Size(&o.Limits.Memory), section: "limits", reload: true,
			absent: "by control group",
			help: "refuse what makes records in memory grow, and large requests, when the process " +
				"takes this `size`, 0: four fifths of what its control group allows"},
		{name: "max-size", value: cli.Size(&o.Limits.MaxSize), section: "limits", reload: true,
			absent: "no limit",
			help:   "refuse what makes databases grow when their records take this `size`"},
		{name: "min-free", value: cli.Size(&o.Limits.MinFree), standard: "64m",
			section: "limits", reload: true,
			help: "refuse all but removals when the disk has less than this `size` left, or a " +
				"sixteenth of it"},

		{name: "config", value: textValue(&o.config), commandLine: true,
			help: "read options from a TOML `file`, again on HUP; see docs/configuration.md"},
		{name: "help", short: "h", value: switchValue(&o.help), commandLine: true,
			help: "explain the options"},
		{name: "version", value: switchValue(&o.version), commandLine: true,
			help: "print the version"},
	}
}

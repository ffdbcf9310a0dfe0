package server

import (
	"fmt"
	"slices"
	"time"

	"gotycoon/db/expr"
	"gotycoon/memcache"
	"gotycoon/snapshot"
)

// This file finds values that a server starts with, though they cannot do what somebody meant by
// them: the original takes no notice of them, so a start must not fail. "config check" prints these
// texts, and a start has them in its log.

// doubts returns a text for each such value. It reads the configuration and nothing else.
func (c *Config) doubts() (texts []string) {
	warn := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	if c.Plugins.Database == "" { // another engine has parameters of its own
		for _, text := range c.Databases {
			for _, warning := range expr.Warnings(text) {
				warn("database %s: %s", text, warning)
			}
		}
	}
	c.Plugins.doubts(warn)
	if name := c.Snapshots.Compressor; name != "" {
		if _, known := snapshot.ParseCompressor(name); !known {
			warn("-bgsc: there is no compressor %q, so snapshots are not compressed: none, zlib, lzo, lzma, zstd or s2", name)
		}
	}
	for _, one := range c.idle() {
		if one.given {
			warn("%s has no effect without %s", one.option, one.needs)
		}
	}
	for option, value := range map[string]time.Duration{
		"-uasi": c.SyncInterval, "-riv": c.MasterInterval, "-asi": c.AutoSync, "-scrtime": c.Script.Time, "-memcache-qtout": c.Plugins.MemcacheQueueTimeout,
	} {
		if value < 0 {
			warn("%s: a time below 0 counts as if the option was not given", option)
		}
	}
	for option, value := range map[string]int64{
		"-checkpoint": c.CheckpointSize, "-scrmem": c.Script.Memory, "-copy-limit": c.Replication.CopyLimit, "-removals": c.Replication.Removals,
	} {
		if value < 0 {
			warn("%s: a number below 0 counts as if the option was not given", option)
		}
	}
	if c.ReadOnly && c.MasterHost != "" {
		warn("-ord with -mhost: a server that opens its databases for reading only cannot store the updates of its master")
	}
	slices.Sort(texts) // maps above have no order
	return texts
}

// idleOption is an option that does nothing on its own.
type idleOption struct {
	option string
	given  bool
	needs  string // what it is about
}

// idle lists the options that do nothing in this configuration, if they are given.
func (c *Config) idle() []idleOption {
	p := &c.Plugins
	var idle []idleOption
	without := func(missing bool, needs string, options map[string]bool) {
		for option, given := range options {
			if missing {
				idle = append(idle, idleOption{option, given, needs})
			}
		}
	}
	without(c.Snapshots.Dir == "", "-bgs", map[string]bool{"-bgsc": c.Snapshots.Compressor != ""})
	without(c.Script.Path == "", "-scr", map[string]bool{"-scrtime": c.Script.Time != 0, "-scrmem": c.Script.Memory != 0})
	without(p.Server == "", "-plsv", map[string]bool{"-plex": p.Expr != ""})
	without(p.MemcachePort == 0, "-memcache-port", map[string]bool{"-memcache-opts": p.MemcacheOptions != "", "-memcache-qtout": p.MemcacheQueueTimeout != 0})
	without(c.AutoSync <= 0, "-asi", map[string]bool{"-ash": c.AutoSyncHard})
	without(c.Admin.Addr == "", "-admin", map[string]bool{"-console-read-only": c.Admin.ConsoleReadOnly})
	without(c.UpdateLog == "", "-ulog", map[string]bool{"-ulog-slave-size": c.Retention.SlaveSize > 0})
	return idle
}

// doubts finds what the configuration of memcached says in vain.
func (p *PluginConfig) doubts(warn func(format string, args ...any)) {
	if strange := memcache.UnknownOptions(p.MemcacheOptions); strange != "" {
		warn("-memcache-opts %s: there are no options %q: f keeps flags, m serves all of today's commands, q is a message queue, r is read-only",
			p.MemcacheOptions, strange)
	}
	if p.Server == "" {
		return
	}
	for _, text := range memcache.Warnings(p.Expr) {
		warn("-plex: %s", text)
	}
}

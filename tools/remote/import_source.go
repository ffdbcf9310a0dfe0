package remote

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"gotycoon/tools/cli"
)

// sourceOptions are the options of import for what other systems have written.
type sourceOptions struct {
	format   string
	database *int64
	flags    bool
	table    tableOptions
}

// The values of -from.
const (
	fromRDB       = "redis-rdb"
	fromAOF       = "redis-aof"
	fromMemcached = "memcached"
	fromCSV       = "csv"
	fromJSONL     = "jsonl"
)

// memcachedPort is the usual port of memcached.
const memcachedPort = "11211"

func formats() []string {
	return []string{fromRDB, fromAOF, fromMemcached, fromCSV, fromJSONL}
}

func (o *sourceOptions) define(f *cli.Flags) {
	f.StringVar(&o.format, "from", "", "read another `format`: redis-rdb, redis-aof (a file, or redis's appendonlydir), csv, jsonl, or memcached (the argument is the HOST or HOST:PORT of a running one)")
	o.database = f.Integer("redis-db", 0, "redis: number of its database (default 0)")
	f.BoolVar(&o.flags, "flags", false, "memcached: put an item's flags behind its value, where a server with -plex '#opts=f' keeps them")
	f.StringVar(&o.table.key, "key", "", "csv, jsonl: `column` of the keys (default: the first; jsonl: \"key\")")
	f.StringVar(&o.table.value, "value", "", "csv, jsonl: `column` of the values; several with commas, or * for all others, make a JSON object (default: the second; jsonl: \"value\")")
	f.StringVar(&o.table.expires, "expires", "", "csv, jsonl: `column` with the time when a record expires, in seconds since 1970; empty: -xt (jsonl default: \"xt\")")
	f.StringVar(&o.table.separator, "separator", ",", "csv: `character` between columns; \\t is a tab")
	f.BoolVar(&o.table.noHeader, "no-header", false, "csv: the first line is a record; columns are numbers from 1 on")
}

// optionsOf are the formats that the options are for.
func optionsOf() map[string][]string {
	return map[string][]string{
		"redis-db": {fromRDB, fromAOF}, "flags": {fromMemcached}, "separator": {fromCSV}, "no-header": {fromCSV},
		"key": {fromCSV, fromJSONL}, "value": {fromCSV, fromJSONL}, "expires": {fromCSV, fromJSONL},
	}
}

// source returns the source of the argument, nil for lines KEY<tab>VALUE.
func (o *sourceOptions) source(c *call) (source, error) {
	if o.format != "" && !slices.Contains(formats(), o.format) {
		return nil, usageError("-from: must be " + strings.Join(formats(), ", "))
	}
	// A table that is read as lines KEY<tab>VALUE would remove records: its lines have no tab.
	for name, of := range optionsOf() {
		if c.flags.Changed(name) && !slices.Contains(of, o.format) {
			return nil, usageError(fmt.Sprintf("-%s: is for -from %s", name, strings.Join(of, " and ")))
		}
	}
	if o.format == "" {
		return nil, nil
	}
	if *o.database < 0 {
		return nil, usageError("-redis-db: must be 0 or more")
	}
	if o.format == fromMemcached && c.flags.NArg() == 0 {
		return nil, usageError("-from memcached: give the address of the server, HOST or HOST:PORT")
	}
	if o.format == fromAOF && c.flags.NArg() == 0 {
		return nil, usageError("-from redis-aof: give the file, or the directory appendonlydir")
	}
	switch o.format {
	case fromRDB:
		return &rdbSource{redisSource{call: c, database: int(*o.database)}}, nil
	case fromAOF:
		return &aofSource{redisSource{call: c, database: int(*o.database)}}, nil
	case fromMemcached:
		addr := c.flags.Arg(0)
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), memcachedPort)
		}
		return &memcachedSource{addr: addr, flags: o.flags, limit: cmp.Or(max(0, *c.timeout), firstAnswer)}, nil
	case fromCSV:
		return newCSV(c, o.table)
	}
	return &jsonSource{call: c, tableOptions: o.table}, nil
}

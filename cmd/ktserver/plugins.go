package main

import "gotycoon/tools/cli"

// definePlugins lists the options of what the original has in loadable libraries.
func (o *options) definePlugins() {
	f, p := o.flags, &o.Plugins
	f.StringVar(&p.Server, "plsv", "", "run the plug-in server with this `file` name: ktplugservmemc.so, memcached's protocol")
	f.StringVar(&p.Expr, "plex", "", "its `configuration`, for example 'port=11211#opts=f'")
	f.StringVar(&p.Database, "pldb", "", "keep all databases in the engine with this `file` name: ktplugdbvoid.so, which keeps nothing")
	f.Var(integer(&p.MemcachePort), "memcache-port", "serve memcached clients on this port")
	f.StringVar(&p.MemcacheOptions, "memcache-opts", "", "its options, `letters`: f keep flags, m all of today's commands, q message queue, r read-only (default f)")
	f.Var(cli.Duration(&p.MemcacheQueueTimeout), "memcache-qtout", "with q: get waits so many seconds for a message (default 10)")
}

// Package memcache serves the first database over the memcached protocols, on a port of its own. By
// default it behaves as the original's memcached plug-in does. With the options f or m it behaves
// as memcached does, and knows memcached's newer commands, the meta commands and the binary
// protocol. With the option q it serves a message queue.
//
// A connection is made of parts, each with its own state:
//
//	conn          one connection with the request in execution (conn.go)
//	├ wire        reads lines and data blocks, writes replies (wire.go)
//	└ storage     reads and changes items for all three protocols (item.go, store.go)
//	  └ consumer  holds the messages that the client has fetched (consumer.go)
//
// A text command is a function in text.go, stats.go or admin.go. A meta command (meta.go,
// meta_item.go) and a request of the binary protocol (exchange, in exchange.go and
// binary_command.go) are values with the connection inside. command.go has the table of commands
// and serves one request after the other. So a get takes this way: conn.serveOne, wire.readLine,
// conn.execute, textGet, storage.fetch, wire.sayValue.
//
// The messages of a queue are records whose keys have a stamp in them (message.go, producer.go).
// Requests that wait for a message stand in lines, one line for each queue name (queue.go). Where
// servers share the database, one goroutine looks for messages of the others (others.go).
//
// Each file uses only files of a lower layer:
//
//	server.go                                   connections from their beginning to their end
//	command.go                                  the table of commands, and the way to it
//	text.go stats.go meta*.go binary_command.go commands
//	access.go admin.go                          who may give commands; flush_all and the like
//	conn.go exchange.go                         a connection; a binary request on it
//	store.go item.go consumer.go producer.go    operations
//	wire.go value.go queue.go others.go         lines, items, waiting requests
//	shared.go counts.go                         what connections share
//	config.go binary.go message.go number.go    options, formats
package memcache

// Package memcache serves the first database over the memcached protocols, on a port of its own. By
// default it behaves as the original's memcached plug-in does. With the options f or m it behaves
// as memcached does, and knows memcached's newer commands, the meta commands and the binary
// protocol. With the option q it serves a message queue.
//
// A connection is made of parts, each with its own state:
//
//	conn          serves one request after the other; the table of commands (conn.go)
//	├ wire        reads lines and data blocks, writes replies (wire.go)
//	└ storage     reads and changes items for all three protocols (item.go, store.go)
//	  └ consumer  holds the messages that the client has fetched (consumer.go)
//
// A text command is a function in text.go or admin.go. A meta command (meta.go, meta_item.go) and a
// request of the binary protocol (exchange, in binary.go and binary_command.go) are values with the
// connection inside. So a get takes this way: conn.serveOne, wire.readLine, conn.execute, textGet,
// storage.fetch, wire.sayValue.
//
// The messages of a queue are records whose keys have a stamp in them (message.go). Requests that
// wait for a message stand in lines, one line for each queue name (queue.go).
package memcache

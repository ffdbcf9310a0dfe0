// Package memcache serves the first database over the memcached protocols, on a port of its own. It
// does so as the original's memcached plug-in does, or, with the options f or m, as memcached does,
// with its newer commands, the meta commands and the binary protocol. With the option q it serves a
// message queue.
//
// A command is a row of the table in command.go. It parses its words and calls an operation of
// item.go, which all three protocols share. Files named after a family of commands hold its parsing
// and its replies.
package memcache

// Package memcache serves the first database over the memcached protocols on a port of its own: as the plug-in of the original
// does (reference: the memcached plug-in server), and with the options f or m as memcached does, with its newer commands, the
// meta commands and the binary protocol. With q it is a message queue.
//
// A command is found in the table of command.go; it parses its words and calls an operation of item.go, which all three
// protocols share. Files named after a family of commands hold their parsing and their replies.
package memcache

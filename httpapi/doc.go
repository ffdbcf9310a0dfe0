// Package httpapi answers HTTP/1.x requests: remote procedure calls under /rpc/ and the REST verbs on everything
// else, as Kyoto Tycoon 0.9.56 does. The sections named in comments are those of its network reference.
//
// A Session reads requests from a netio.Conn, which carries binary requests too, and appends the replies to it.
// Requests are parsed inside the connection's buffer: names, keys and values are slices of it, decoded in place.
//
// To find a procedure, look for its name in the table in procedures.go; rpcX is in the file of its family.
package httpapi

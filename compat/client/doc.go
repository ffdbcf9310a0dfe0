// Package client tries the Go client, which is a module of its own, with servers of this module:
// its calls, its streams, several servers of which one is the primary, and the examples of its
// package page. What needs no server is tried beside the client.
package client

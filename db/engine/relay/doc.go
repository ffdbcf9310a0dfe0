// Package relay carries the named signals of clients (WAIT, SIGNAL) between the servers of an
// engine.
//
// # What is promised
//
// A signal is not kept: it reaches who waits at that moment, at whatever server. A broadcast wakes
// all of them. Any other signal wakes one client in all: one of the server where it is sent if
// somebody waits there, and then no other server hears of it; else one of another server. Who
// sends a signal does not wait for other servers, and is not told whom they have woken.
//
// A signal may be lost with a connection to the engine, and while there is none, as if nobody had
// waited. None wakes more clients than it may.
//
// # One of all servers
//
// All servers hear the messages of the engine in one order. A server asks the others with a
// message "one". Each server where somebody waits answers with "taken", and when it hears the
// first "taken" of a signal it knows whose the signal is, as all others do: nobody decides for
// others, and no state outlives the messages. Where the client has left in the meantime, the
// server asks the others again.
//
//	A: one 7 x          nobody waits for x at A
//	B: taken A7 by B    at B and C somebody does
//	C: taken A7 by C    comes second, so C lets its client wait
//
// A claim on the signal in a table of the engine would take a transaction for each server, and
// somebody would have to remove it.
//
// # What it costs the engine
//
// A server listens only while a client waits, and a minute or two longer. What a server sends is
// collected while its last message is under way, so a server has one message on its way however
// many signals its clients send, and an engine carries no message where nobody listens.
package relay

package ulog

// Two watermarks.
//
// Acked is what this server's disk has, as safely as its mode promises. It drives what concerns
// this server: streams to followers, the intake of a follower, checkpoints. A Confirmer knows a
// second watermark, what enough other servers have as well. It drives the answers to clients, and
// nothing else: if a stream waited for confirmation, no follower would ever be sent the update that
// it is to confirm, and two servers that follow each other would wait for each other for ever.
//
// So Wait and Acked are about this server alone, and whoever answers a client goes through
// owed.Pending, which asks the Confirmer after the log.

// A Confirmer knows which updates of a log enough other servers have acknowledged.
//
// Two numbers say how many servers are enough. usual is that of the database; what becomes of
// answers while so many servers are not there is the operator's choice. asked is the number that
// the client has asked for, 0 for none: it is kept to whatever the operator has chosen.
type Confirmer interface {
	// Required returns the usual number of databases that have none of their own.
	Required() int
	// Confirmed returns the newest stamp up to which everything may be told to clients. It costs a
	// few atomic loads.
	Confirmed(usual, asked int) Stamp
	// WaitConfirmed returns nil when everything up to a stamp may be told to clients.
	WaitConfirmed(at Stamp, usual, asked int) error
	// Admits returns why an update is to be refused before it is appended: it could not be
	// confirmed. Otherwise it returns nil.
	Admits(usual, asked int) error
}

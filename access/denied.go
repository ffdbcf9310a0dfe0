package access

import "net/http"

// Denied is the error of a request that is refused. Its text may be shown to the client.
type Denied struct {
	// Reason says why in words, without secrets.
	Reason string

	// Remote: the server is protected by default and the peer is on another machine. No request of
	// its connection will be answered.
	Remote bool

	// Unknown: the peer has sent no credentials, or wrong ones. With other credentials the request
	// may be allowed.
	Unknown bool
}

// Prefix begins the text of every Denied.
const Prefix = "access denied: "

// Error returns Prefix and the reason.
func (d *Denied) Error() string { return Prefix + d.Reason }

// Status is the HTTP status: 401 for Unknown, else 403.
func (d *Denied) Status() int {
	if d.Unknown {
		return http.StatusUnauthorized
	}
	return http.StatusForbidden
}

// Challenge is the value of WWW-Authenticate in an HTTP reply with status 401.
const Challenge = `Basic realm="gotycoon", charset="UTF-8"`

// OpenHint says how to open a protected server to other machines.
const OpenHint = "this server answers only clients on its own machine; " +
	"start it with -access FILE to say who may do what, or with -host 0.0.0.0 to let everybody in"

// errRemote is the error of a protected server for peers on other machines.
var errRemote = &Denied{Reason: OpenHint, Remote: true}

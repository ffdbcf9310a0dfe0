package remote

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"gotycoon/client"
	"gotycoon/tools/show"
)

const program = "ktremotemgr"

// advice is a line behind a line of the original, which says neither the server nor the cause.
func advice(text string) string { return "\n" + program + ": " + text }

// noConnection is the error of open. Its first line is the line that scripts know from the
// original.
type noConnection struct {
	addr  string
	cause error
}

func newNoConnection(addr string, err error) *noConnection {
	if known, ok := errors.AsType[*client.Error](err); ok && known.Err != nil {
		err = known.Err // without the code, which the first line has
	}
	return &noConnection{addr, err}
}

// Error returns both lines.
func (e *noConnection) Error() string {
	return fmt.Sprintf("DB::open failed: : %d: %s: connection failed", int(client.Network), client.Network) + advice(e.reason())
}

func (e *noConnection) reason() string { return e.addr + ": " + e.cause.Error() }

// Unwrap returns the cause.
func (e *noConnection) Unwrap() error { return e.cause }

// lostServer is the error of a conversation with a server that package client has no part in.
type lostServer struct {
	addr string
	error
}

// Error names the server.
func (e *lostServer) Error() string { return e.addr + ": " + e.error.Error() }

// Unwrap returns the cause.
func (e *lostServer) Unwrap() error { return e.error }

// advised is an error with what to look at.
type advised struct {
	error
	remedy string
}

// Error returns the error, and the remedy on a line of its own: scripts know the lines of the
// original. Where we have added a line before, the remedy follows it.
func (e *advised) Error() string {
	text := e.error.Error()
	if strings.Contains(text, advice("")) {
		return text + "; " + e.remedy
	}
	return text + advice(e.remedy)
}

// Unwrap returns the error without the remedy.
func (e *advised) Unwrap() error { return e.error }

// advise adds to the error of a sub-command what to look at, where the error does not say so.
func advise(command string, err error) error {
	if err == nil {
		return nil
	}
	remedy := remedyOfConnection(err)
	if remedy == "" {
		remedy = remedyOfRefusal(command, err)
	}
	if remedy == "" {
		return err
	}
	return &advised{err, remedy}
}

// remedyOfConnection says what to look at when there is no connection, or no reply. It is empty for
// all other errors.
func remedyOfConnection(err error) string {
	_, isNoConnection := errors.AsType[*noConnection](err)
	_, isLost := errors.AsType[*lostServer](err)
	if !isNoConnection && !isLost && !errors.Is(err, client.ErrNetwork) || errors.Is(err, context.Canceled) {
		return ""
	}
	named := func(options string) string {
		if isNoConnection {
			return " (" + options + ")"
		}
		return ""
	}
	is := func(causes ...error) bool {
		return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
	}
	unknownName, isName := errors.AsType[*net.DNSError](err)
	_, unknownAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	_, wrongName := errors.AsType[x509.HostnameError](err)
	text := err.Error()
	switch {
	case is(syscall.ECONNREFUSED):
		return "is the server running, and is this its address?" + named("-host, -port")
	case isName && unknownName.IsNotFound:
		return "is this the name of the server's machine?" + named("-host")
	case unknownAuthority:
		return "-tls-ca FILE names the authority that has signed the server's certificate"
	case wrongName:
		return "-tls-name NAME says which name the server's certificate has"
	case strings.Contains(text, "certificate required"):
		return "-tls-cert and -tls-key name the certificate that this server asks for"
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return "the server does not speak TLS on this port: leave out -tls and the options that imply it, or give the port that speaks it"
	case is(context.DeadlineExceeded, os.ErrDeadlineExceeded):
		return "there was no reply within the time of -tout: is the server busy, or is this the port of something else?"
	case is(io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE):
		return "the server has closed the connection: has it ended, is this the port of something else, or does only one side speak TLS? (-tls)"
	case strings.Contains(text, "malformed HTTP"):
		return otherServer
	}
	return ""
}

// otherServer is the remedy where something else answers.
const otherServer = "something else answers: is this the port of the server's databases, and not that of its console, of a service or of memcached?"

// remedyOfRefusal says what to look at after a refusal of the server or of the file system. It is
// empty for all other errors.
func remedyOfRefusal(command string, err error) string {
	text := err.Error()
	file, noFile := errors.AsType[*show.OpenError](err)
	switch {
	case noFile:
		return file.Err.Error()
	case strings.Contains(text, "this port speaks TLS"):
		return "-tls makes this command speak TLS, and -tls-ca FILE names an authority that the system does not know" + ofTarget(command)
	case strings.Contains(text, "access denied: this needs a user") && !errors.Is(err, client.ErrDenied):
		return "the binary protocol shows no credentials: the server's access file can let in this machine (allow anyone replicate from=ADDRESS), or a certificate (-tls-cert)"
	case strings.Contains(text, "access denied: this needs a user"):
		return "-user and -password-file, or -token-file, name the credentials" + ofTarget(command)
	case errors.Is(err, client.ErrWrongServer):
		return otherServer
	}
	return ""
}

// ofTarget adds how the options of migrate are called that are for its second server.
func ofTarget(command string) string {
	if command != "migrate" {
		return ""
	}
	return "; for TO alone they begin with -to-, and tls:// or tcp:// in front of an address is for that server"
}

// Package pgserver runs a PostgreSQL of one's own in a directory: for tests, and for who tries a
// cluster without having an engine yet.
//
// PostgreSQL refuses to run as root. Who is root therefore runs it as the user postgres, or nobody,
// to whom the directory is given.
package pgserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gotycoon/internal/freeport"
)

// patience is how long a server may take to start, to stop or to be promoted.
const patience = 60 * time.Second

// Options of a Server.
type Options struct {
	Bin      string   // where PostgreSQL's programs are; empty: see Find
	Port     int      // on 127.0.0.1; 0: a free one
	Settings []string // lines for postgresql.conf, such as "fsync = off"
	Apart    bool     // a Ctrl-C in the terminal is not for it: its users end first
	Guarded  bool     // a server that is made now asks for a password, which URL has
}

// Server is a PostgreSQL in a directory. One goroutine at a time uses its methods.
type Server struct {
	dir  string // of its files; the data is in dir/data, what it says in dir/log
	port int
	bin  string
	pass string // the file with the password; empty: it asks for none
	own  bool   // Options.Apart

	reserved *freeport.Reservation // of the port, until Release; nil: the port is Options.Port

	cred *syscall.Credential // nil: run as who we are
	cmd  *exec.Cmd           // nil: it does not run
	done chan error
}

// ErrMissing is the error where PostgreSQL's programs are not found.
var ErrMissing = errors.New("PostgreSQL is not installed: install it (Debian's package postgresql), with initdb in PATH if its place is an unusual one")

// Find returns the directory with the programs of the newest PostgreSQL that is installed, empty
// for none.
func Find() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // beside it are the others
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
}

// Create prepares a server in dir, where it makes what is missing. Data that is there already is
// kept, and so are its settings, but for those given. Without Options.Guarded everybody on this
// machine may connect as the user postgres, who may run any program as the user of the server: that
// is for tests.
func Create(dir string, o Options) (*Server, error) {
	s, err := prepare(dir, o)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); errors.Is(err, os.ErrNotExist) {
		if err := s.initialise(o.Guarded); err != nil {
			return nil, err
		}
	}
	if file := filepath.Join(s.dir, passwordFile); o.Guarded && exists(file) {
		s.pass = file
	}
	return s, s.configure(o.Settings)
}

// passwordFile is a file of libpq with the password of the user postgres, in the server's
// directory.
const passwordFile = "pgpass"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// initialise makes an empty database server. The password is in its file before the server knows
// it: an attempt that fails later is repeated from the beginning, with another password.
func (s *Server) initialise(guarded bool) error {
	args := []string{"-D", s.data(), "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "--no-instructions"}
	if !guarded {
		return s.program("initdb", append(args, "--auth=trust")...)
	}
	password, once := rand.Text(), filepath.Join(s.dir, "password")
	if err := s.write(once, password); err != nil {
		return err
	}
	defer os.Remove(once)
	if err := s.write(filepath.Join(s.dir, passwordFile), "*:*:*:postgres:"+password+"\n"); err != nil {
		return err
	}
	return s.program("initdb", append(args, "--auth=scram-sha-256", "--pwfile="+once)...)
}

// write makes a file that the user of the server alone can read.
func (s *Server) write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil || s.cred == nil {
		return err
	}
	return os.Chown(path, int(s.cred.Uid), int(s.cred.Gid))
}

func prepare(dir string, o Options) (*Server, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, port: o.Port, bin: o.Bin, own: o.Apart}
	if s.bin == "" {
		s.bin = Find()
	}
	if s.bin == "" {
		return nil, ErrMissing
	}
	if s.port == 0 {
		reserved, err := freeport.Reserve(1)
		if err != nil {
			return nil, err
		}
		s.port, s.reserved = reserved.First, reserved
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return s, nil
	}
	return s, s.becomeUser()
}

// becomeUser finds a user who is not root, and gives the directory to it.
func (s *Server) becomeUser() error {
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return fmt.Errorf("PostgreSQL does not run as root, and there is no user for it: %w", err)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}
	return os.Chown(s.dir, int(uid), int(gid))
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Dir returns the directory of the server's files.
func (s *Server) Dir() string { return s.dir }

// Addr returns the address where the server listens.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL returns how to connect to a database of the server. It has no password, but the name of the
// file that has it.
func (s *Server) URL(database string) string {
	at := "postgres://postgres@" + s.Addr() + "/" + database + "?sslmode=disable"
	if s.pass != "" {
		at += "&passfile=" + strings.ReplaceAll(url.QueryEscape(s.pass), "+", "%20") // libpq knows no "+"
	}
	return at
}

// configure adds settings to those of the server; of two for the same thing the later one counts.
func (s *Server) configure(settings []string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	own := []string{
		"listen_addresses = '127.0.0.1'", "port = " + strconv.Itoa(s.port), "unix_socket_directories = ''",
	}
	_, err = f.WriteString(strings.Join(append(own, settings...), "\n") + "\n")
	return err
}

// Configure adds settings, also while the server runs. Some count from its next start on only.
func (s *Server) Configure(settings ...string) error {
	if err := s.configure(settings); err != nil || s.cmd == nil {
		return err
	}
	return s.cmd.Process.Signal(syscall.SIGHUP)
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGPASSFILE=/dev/null")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: s.own}
	return cmd
}

// program runs one of PostgreSQL's programs to its end.
func (s *Server) program(name string, args ...string) error {
	said, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(said)))
	}
	return nil
}

// Run carries out statements in a database of a server that runs.
func (s *Server) Run(database, statements string) error {
	return s.program("psql", "-X", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-c", statements, s.URL(database))
}

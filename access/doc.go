// Package access decides who may do what: users with passwords, tokens, certificates and networks,
// read from an access file.
//
//	guard, err := access.Open(access.Options{Path: "access"})
//	defer guard.Close()
//	v := guard.Visit(conn)                      // nil: everything is allowed
//	err = v.Present([]byte("Basic YW5uYTpzZWNyZXQ="))
//	err = v.Key(access.Write, database, key)    // nil, or *Denied
//
// The access file has a line for each fact. "#" begins a comment; %XX stands for any byte in db=
// and prefix=.
//
//	anna:$2y$10$…                 a user and the bcrypt hash of a password, as htpasswd -B makes
//	token NAME SHA256             the SHA-256 of a token in hexadecimal; NAME may have several
//	cert NAME [SUBJECT]           a client certificate: its common name, or a DNS name,
//	                              e-mail address or URI in it
//	allow WHO RIGHT,… [db=NAME,…] [prefix=TEXT] [service=NAME,…] [from=NETWORK,…]
//
// A password, a token and a certificate of one name are three ways to be the same WHO; "anyone" is
// everybody, with or without credentials. Rights are read, write, replicate, and admin, which
// includes the others.
//
// A rule applies to everything, unless it has db= (names or numbers of databases, * for all),
// prefix= (keys that begin with it) or service= (counter, lock, sequence, quota). It applies to all
// peers, unless it has from= (an address, ADDRESS/BITS, or local: this machine). A request that no
// rule allows is refused.
//
// A guard without a file is protection by default: it refuses peers that are not on this machine.
//
// Passwords and tokens appear in no log line and in no error.
package access

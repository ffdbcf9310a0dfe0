package server

import (
	"fmt"
	"time"

	"gotycoon/internal/tlsfiles"
)

// certificate is one that this server shows to others.
type certificate struct {
	of      string // "ports" or "master", for the metrics
	path    string
	used    string // who refuses it when it has expired
	expires func() (at time.Time, has bool)
}

// certificates are those that this server shows. Others may be shown to it, by its master and by
// clients: about these, whoever shows them is to be told.
type certificates []certificate

// portsCertificate is the one that the ports show.
func portsCertificate(c *TLSConfig, files *tlsfiles.Server) certificate {
	return certificate{"ports", c.Cert, "clients", func() (time.Time, bool) { return files.Expires(), true }}
}

// masterCertificate is the one that masters and the members of a cluster are shown, if there is
// one.
func masterCertificate(c *TLSConfig, expires func() (time.Time, bool)) certificate {
	return certificate{"master", c.MasterCert, "the master and the members of a cluster", expires}
}

// alarms tells of certificates that have expired or will do so soon.
func (c certificates) alarms(now time.Time) (all []alarm) {
	for i := range c {
		at, has := c[i].expires()
		if !has {
			continue
		}
		end := instant(at)
		switch left := at.Sub(now); {
		case left <= 0:
			all = append(all, alarm{name: alarmTLS, text: fmt.Sprintf(
				"the certificate in %s has expired on %s: %s refuse it. Put a new one and its key in place, the server takes them at once", c[i].path, end, c[i].used)})
		case left < tlsfiles.ExpiresSoon:
			all = append(all, alarm{name: alarmTLS, text: fmt.Sprintf(
				"the certificate in %s expires on %s, and then %s refuse it. Put a new one and its key in place, the server takes them at once",
				c[i].path, end, c[i].used)})
		}
	}
	return all
}

package main

// defineTLS lists the options of encryption. Certificates, keys and lists are files in PEM, which are read again when they change.
func (o *options) defineTLS() {
	f, t := o.flags, &o.TLS
	f.StringVar(&t.Cert, "tls-cert", "", "speak TLS on all ports, with the certificate in this `file`")
	f.StringVar(&t.Key, "tls-key", "", "`file` of its private key")
	f.StringVar(&t.CA, "tls-ca", "", "ask clients for certificates that the authorities in this `file` have signed")
	f.StringVar(&t.Client, "tls-client", "", "these certificates are `required` (default) or optional")
	f.StringVar(&t.CRL, "tls-crl", "", "`file` of revocation lists of these authorities")
	f.StringVar(&t.Mode, "tls", "", "TLS is `required` (default), or allowed: plaintext on the same ports too")
	f.Var(integer(&t.PlainPort), "plain-port", "serve databases without TLS on this port too")
	f.BoolVar(&t.MasterTLS, "master-tls", false, "speak TLS with the master; implied by the following options")
	f.StringVar(&t.MasterCA, "master-tls-ca", "", "`file` of the authorities that vouch for the master (default: those of the system)")
	f.StringVar(&t.MasterCert, "master-tls-cert", "", "`file` of the certificate to show the master")
	f.StringVar(&t.MasterKey, "master-tls-key", "", "`file` of its private key")
	f.StringVar(&t.MasterName, "master-tls-name", "", "`name` in the certificate of the master (default: that of -mhost)")
}

package util

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"gotycoon/client"
	"gotycoon/client/wire/tsv"
)

// rpc calls a procedure of a server and prints its outcome and the returned columns.
func rpc(ctx context.Context, c *call) error {
	host := c.flags.String("host", "localhost", "`name` of the server")
	port := c.flags.Integer("port", 1978, "port of the server (default 1978)")
	timeout := c.flags.Seconds("tout", 0, "give up when it takes longer than so many seconds (default: never)")
	who := c.flags.Credentials()
	secure := c.flags.TLS()
	in := c.flags.String("ienc", "", "names and values are encoded: B for Base64, Q for quoted-printable, U for URL encoding")
	out := c.flags.String("oenc", "", "print names and values encoded")
	if err := c.parse(1, -1); err != nil {
		return err
	}
	if len(c.args)%2 == 0 {
		return usageError("the last name has no value")
	}
	if err := who.Read(); err != nil {
		return err
	}
	decode, err := columnEncoding("-ienc", *in)
	if err != nil {
		return err
	}
	encode, err := columnEncoding("-oenc", *out)
	if err != nil {
		return err
	}
	config, err := secure.Config(*host)
	if err != nil {
		return err
	}
	cl := client.New(net.JoinHostPort(*host, strconv.FormatInt(*port, 10)), client.Options{
		Timeout: max(0, *timeout), TLS: config,
		Credentials: client.Credentials{User: who.User, Password: who.Password, Token: who.Token},
	})
	defer cl.Close()
	if err := cl.Connect(ctx); err != nil {
		// The first line is that of the original.
		return fmt.Errorf("opening the connection failed\n%s: %s:%d: %w", program, *host, *port, err)
	}
	params := make([]string, 0, len(c.args))
	for _, arg := range c.args[1:] {
		params = append(params, string(tsv.DecodeColumn([]byte(arg), decode)))
	}
	rows, err := cl.DB("").Call(ctx, c.args[0], params...)
	return c.printResult(rows, err, encode)
}

// columnEncoding reads the value of -ienc or -oenc.
func columnEncoding(option, letter string) (tsv.Encoding, error) {
	switch letter {
	case "":
		return tsv.Raw, nil
	case "B":
		return tsv.Base64, nil
	case "Q":
		return tsv.Quoted, nil
	case "U":
		return tsv.URL, nil
	}
	return tsv.Raw, usageError(option + ": must be B, Q or U")
}

// printResult prints the outcome and the returned columns.
func (c *call) printResult(rows client.Rows, err error, e tsv.Encoding) error {
	code, failed := 0, err != nil
	if failed {
		var known *client.Error
		if !errors.As(err, &known) {
			return err
		}
		code, rows = int(known.Code), client.Rows{"ERROR": []byte(known.Message)}
	}
	fmt.Fprintf(c.out, "RV\t%d: %s\n", code, resultName(code))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(c.out, "%s\t%s\n", encoded([]byte(name), e), encoded(rows[name], e))
	}
	if failed {
		return exitStatus(1) // the output has the error
	}
	return nil
}

// encoded encodes a column as people and mail programs expect it: quoted-printable has capital
// digits.
func encoded(column []byte, e tsv.Encoding) []byte {
	out := tsv.AppendColumn(nil, column, e)
	for i := 0; e == tsv.Quoted && i+2 < len(out); i++ {
		if out[i] == '=' {
			copy(out[i+1:i+3], bytes.ToUpper(out[i+1:i+3]))
		}
	}
	return out
}

// resultName returns the original's name of a result code.
func resultName(code int) string {
	names := [...]string{"RVSUCCESS", "RVEMISC", "RVEINVALID", "RVELOGIC", "RVETIMEOUT", "RVEINTERNAL", "RVENETWORK"}
	if code < 0 || code >= len(names) {
		return "RVEMISC"
	}
	return names[code]
}

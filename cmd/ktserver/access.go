package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"gotycoon/access"
	"gotycoon/server"
)

// accessCommand is the first argument of the commands about access files. No database has that
// name: it has no suffix.
const accessCommand = "access"

const accessUsage = `usage:
  %[1]s access check FILE    look for errors in an access file
  %[1]s access hash [USER]   make the line of a user, from a password on standard input
  %[1]s access token NAME    make the line of a token, from one on standard input (openssl rand -hex 32)
`

// errAccessUsage says that there is no such command.
var errAccessUsage = errors.New("no such command")

// runAccess runs a command about access files.
func runAccess(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := doAccess(args, stdin, stdout, stderr)
	switch {
	case errors.Is(err, errAccessUsage):
		fmt.Fprintf(stderr, accessUsage, server.Program)
		return 1
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", server.Program, err)
		return 1
	}
	return 0
}

func doAccess(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "check":
		summary, err := access.Check(args[1])
		if err == nil {
			fmt.Fprintf(stdout, "%s: %s\n", args[1], summary)
		}
		return err
	case len(args) == 1 && args[0] == "hash":
		return printHash("", access.HashPassword, stdin, stdout, stderr)
	case len(args) == 2 && args[0] == "hash":
		return printHash(args[1]+":", access.HashPassword, stdin, stdout, stderr)
	case len(args) == 2 && args[0] == "token":
		return printHash("token "+args[1]+" ", access.HashToken, stdin, stdout, stderr)
	}
	return errAccessUsage
}

// printHash prints the line of an access file for a secret: before, then the hash.
func printHash(before string, hash func([]byte) (string, error), stdin io.Reader, stdout, stderr io.Writer) error {
	secret, err := readSecret(stdin, stderr)
	if err != nil {
		return err
	}
	text, err := hash(secret)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, before+text)
	return err
}

// readSecret reads a line; a terminal does not show it.
func readSecret(stdin io.Reader, stderr io.Writer) ([]byte, error) {
	if f, ok := stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(stderr, "password or token: ")
		defer fmt.Fprintln(stderr)
		return term.ReadPassword(int(f.Fd()))
	}
	line, err := bufio.NewReader(stdin).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

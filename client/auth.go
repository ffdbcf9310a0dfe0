package client

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

// Credentials are what a server with an access file knows its clients by: a user with a password, or a token, which goes first.
type Credentials struct {
	User, Password string
	Token          string
}

// authorization returns the value of the header, empty for no credentials.
func (c *Credentials) authorization() string {
	switch {
	case c.Token != "":
		return "Bearer " + c.Token
	case c.User != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
	}
	return ""
}

// dial connects to the client's server.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	value := c.opts.authorization()
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errToken
	}
	cn, err := c.connect(ctx)
	if err == nil && value != "" {
		cn.auth = "Authorization: " + value + "\r\n"
	}
	return cn, err
}

var errToken = errors.New("a token has no control characters")

// authorize adds the header to a request.
func (c *Credentials) authorize(r *http.Request) {
	if value := c.authorization(); value != "" {
		r.Header.Set("Authorization", value)
	}
}

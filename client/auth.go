package client

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

// Credentials are a user and password, or a token, for a server with an access file. A token is
// preferred.
type Credentials struct {
	User, Password string
	Token          string
}

// authorization returns the value of the Authorization header, "" without credentials.
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

// authorize adds the Authorization header to a request.
func (c *Credentials) authorize(r *http.Request) {
	if value := c.authorization(); value != "" {
		r.Header.Set("Authorization", value)
	}
}

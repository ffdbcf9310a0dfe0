package election

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// An etcdClient speaks with an etcd over its JSON gateway. That is all of etcd's interface that
// this package needs, and it spares the server gRPC.
type etcdClient struct {
	endpoints      []string
	user, password string
	timeout        time.Duration
	http           http.Client

	mu    sync.Mutex // guards the following
	at    int        // the endpoint that answered last
	token string
}

const maxEtcdReply = 4 << 20

// errTokenNeeded: etcd wants a token, or another one. Tokens end by themselves.
var errTokenNeeded = errors.New("etcd asks for authentication; give a user and a password that it knows")

// call sends a request to the endpoints, one after the other, until one answers. Without an answer
// it is unknown whether the request was carried out. lost tells that one had not answered before
// another one did: it may have carried the request out, too.
func (c *etcdClient) call(ctx context.Context, path string, request, reply any) (lost bool, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return false, err
	}
	lost, err = c.callAny(ctx, path, body, reply, c.timeout)
	if errors.Is(err, errTokenNeeded) && c.user != "" {
		if err = c.authenticate(ctx); err == nil {
			var again bool
			again, err = c.callAny(ctx, path, body, reply, c.timeout)
			lost = lost || again
		}
	}
	return lost, err
}

func (c *etcdClient) callAny(ctx context.Context, path string, body []byte, reply any, timeout time.Duration) (lost bool, err error) {
	var errs []error
	for range c.endpoints {
		c.mu.Lock()
		at, token := c.at, c.token
		c.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, timeout)
		err := c.callOne(limited, c.endpoints[at]+path, token, body, reply)
		cancel()
		if err == nil || errors.Is(err, errTokenNeeded) || ctx.Err() != nil {
			return len(errs) > 0, err
		}
		errs = append(errs, err)
		c.mu.Lock()
		if c.at == at {
			c.at = (at + 1) % len(c.endpoints)
		}
		c.mu.Unlock()
	}
	return true, errors.Join(errs...)
}

func (c *etcdClient) callOne(ctx context.Context, url, token string, body []byte, reply any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxEtcdReply))
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return c.refused(url, resp.StatusCode, text)
	}
	if err := json.Unmarshal(text, reply); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

// refused returns the error of a request that etcd refused.
func (c *etcdClient) refused(url string, status int, text []byte) error {
	var reply struct {
		Message string `json:"message"`
		Error   string `json:"error"`
	}
	_ = json.Unmarshal(text, &reply) // else the status says enough
	message := reply.Message + reply.Error
	needed := status == http.StatusUnauthorized || bytes.Contains(text, []byte("user name is empty")) ||
		bytes.Contains(text, []byte("invalid auth token"))
	if needed {
		return fmt.Errorf("%s: %s: %w", url, message, errTokenNeeded)
	}
	return fmt.Errorf("%s: status %d: %s", url, status, message)
}

// authenticate gets a token.
func (c *etcdClient) authenticate(ctx context.Context) error {
	body, err := json.Marshal(map[string]string{"name": c.user, "password": c.password})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.token = ""
	c.mu.Unlock()
	var reply struct {
		Token string `json:"token"`
	}
	// etcd computes a costly hash of the password.
	if _, err := c.callAny(ctx, "/v3/auth/authenticate", body, &reply, callsPerTimeout*c.timeout); err != nil {
		return fmt.Errorf("log in to etcd as %s: %w", c.user, err)
	}
	c.mu.Lock()
	c.token = reply.Token
	c.mu.Unlock()
	return nil
}

// The requests and replies of etcd's KV service. Keys and values are base64 in JSON, as []byte is
// here; numbers are texts.

type etcdCompare struct {
	Target string `json:"target"` // MOD
	Result string `json:"result"` // EQUAL
	Key    []byte `json:"key"`
	Mod    int64  `json:"mod_revision,string"` // 0: there is no such key
}

type etcdOp struct {
	Put   *etcdPut   `json:"request_put,omitempty"`
	Range *etcdRange `json:"request_range,omitempty"`
}

type etcdPut struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

type etcdRange struct {
	Key []byte `json:"key"`
	End []byte `json:"range_end"`
	// Serializable reads are answered by one server from what it has. They may be old.
	Serializable bool `json:"serializable,omitempty"`
}

type etcdTxn struct {
	Compare []etcdCompare `json:"compare"`
	Success []etcdOp      `json:"success"`
	Failure []etcdOp      `json:"failure"`
}

type etcdKV struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
	Mod   int64  `json:"mod_revision,string"`
}

type etcdRangeReply struct {
	KVs []etcdKV `json:"kvs"`
}

type etcdTxnReply struct {
	Header struct {
		Revision int64 `json:"revision,string"`
	} `json:"header"`
	Succeeded bool `json:"succeeded"`
	Responses []struct {
		Range *etcdRangeReply `json:"response_range"`
	} `json:"responses"`

	lost bool // an earlier try of the same transaction has no answer
}

func equalMod(key []byte, mod int64) etcdCompare {
	return etcdCompare{Target: "MOD", Result: "EQUAL", Key: key, Mod: mod}
}

func put(key, value []byte) etcdOp { return etcdOp{Put: &etcdPut{key, value}} }

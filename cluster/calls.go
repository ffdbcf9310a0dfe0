package cluster

import (
	"context"
	"encoding/json"
	"fmt"
)

// handle answers the calls of other members.
func (n *Node) handle(from, method string, body json.RawMessage) (any, error) {
	switch method {
	case callSeal:
		var term uint64
		if err := json.Unmarshal(body, &term); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(n.ctx, sealTimeout)
		defer cancel()
		return n.seal(ctx, term)
	case callStatus:
		return n.Status(), nil
	case callOrder:
		var o Order
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(n.ctx, orderTimeout)
		defer cancel()
		return struct{}{}, n.carryOut(ctx, o)
	}
	return nil, fmt.Errorf("member %s asks for %q, which this version does not know", from, method)
}

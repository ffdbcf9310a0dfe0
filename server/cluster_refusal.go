package server

import (
	"fmt"

	"gotycoon/cluster"
	"gotycoon/db/dberr"
)

// refusal returns what clients are told whose updates a member refuses, nil if it does not know a
// better reason than that.
func refusal(n *cluster.Node) error {
	switch v := n.View(); v.Role {
	case cluster.Following:
		if why := n.Unreached(v.Primary.Name); why != "" {
			return noPrimary(v.Primary.Addr + " does not answer: nothing has changed, try again")
		}
		return &dberr.Error{
			Code: dberr.NoPermission, Err: fmt.Errorf("%w: %w", dberr.ErrElsewhere, dberr.ErrReadOnly),
			Message: "this member of the cluster follows the primary " + v.Primary.Addr + ": nothing has changed; send updates there, or start this server with -forward",
		}
	case cluster.Leading:
		return nil // since a moment
	case cluster.Opening:
		return noPrimary("this server becomes the primary when enough followers are there: nothing has changed, try again")
	case cluster.Draining:
		return noPrimary("the primary changes at this moment: nothing has changed, try again")
	}
	return noPrimary("'ktremotemgr cluster status' tells why: nothing has changed, try again")
}

func noPrimary(text string) error {
	return &dberr.Error{Code: dberr.SystemError, Message: "no primary of the cluster is known now; " + text, Err: dberr.ErrNoPrimary}
}

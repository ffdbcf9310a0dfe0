package memcache

import (
	"context"
	"errors"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/internal/netio"
)

// consumer fetches messages of a queue for a connection. A fetched message is claimed: no other
// connection gets it. The claim lasts until the client deletes the message, or until the connection
// ends and gives the message back.
type consumer struct {
	base
	ctx    context.Context        // ends when the server stops
	claims map[string][]*db.Claim // messages fetched and not deleted, by queue name, oldest first
}

// fetchMessage claims a message. It may wait for one, so the caller has sent the earlier replies.
func (c *consumer) fetchMessage(name []byte, deadline time.Time) (item, error) {
	if time.Until(deadline) > 0 {
		c.io.Leave()
	}
	before := c.io.Owed.Taken()
	claim, err := c.s.queues.take(c.ctx, c.heed(), &c.io.Owed, name, deadline)
	c.io.Meter.Restart()
	c.io.Owed.GiveBack(before) // keep counts the memory of the claim
	if err == nil {
		err = c.mayTake(name, claim)
	}
	if err == nil {
		err = c.keep(claim)
	}
	c.s.counts.get.count(err == nil)
	if err != nil {
		return item{}, err
	}
	if c.claims == nil {
		c.claims = map[string][]*db.Claim{}
	}
	c.claims[string(name)] = append(c.claims[string(name)], claim)
	it := item{key: name, xt: record.MaxXT}
	it.data, it.flags = c.decode(claim.Value)
	return it, nil
}

// heed returns a function that ends the search for a message when the server stops or the client
// has gone. A search may be long: many messages may have expired, or be claimed by others. The
// limit of -answer-time does not count, because a client may wait for messages as long as it has
// asked for.
func (c *consumer) heed() db.Heed {
	client := c.io.Heed("")
	return func() error {
		if c.ctx.Err() != nil {
			return dberr.ErrNoRecord
		}
		if err := client(); !errors.Is(err, netio.ErrLong) {
			return err
		}
		return nil
	}
}

// claimCost is the memory of a claim without its record.
const claimCost = 256

// keep counts the memory of a claim until the claim is finished. If there is no memory, keep gives
// the message back.
func (c *consumer) keep(claim *db.Claim) error {
	err := c.io.Keep(costOf(claim))
	if err == nil {
		return nil
	}
	return errors.Join(err, claim.GiveBack(nil))
}

func costOf(claim *db.Claim) int { return claimCost + len(claim.Key) + len(claim.Value) }

// mayTake checks the rights once more, because the rules may have changed while the client waited
// for the message. It gives back a message that the client may not have.
func (c *consumer) mayTake(name []byte, claim *db.Claim) error {
	err := c.io.Visitor.Key(access.Read|access.Write, c.db, name)
	if err == nil {
		return nil
	}
	return errors.Join(err, claim.GiveBack(nil))
}

// finish deletes the oldest message of a name among those that this connection has fetched. A
// message that other servers have given to somebody else meanwhile is not found, and is not this
// connection's any more.
func (c *consumer) finish(name []byte) error {
	fetched := c.claims[string(name)]
	if len(fetched) == 0 {
		return dberr.ErrNoRecord
	}
	err := fetched[0].Finish(&c.io.Owed)
	if err != nil && !errors.Is(err, dberr.ErrNoRecord) {
		return err
	}
	_ = c.io.Keep(-costOf(fetched[0])) // giving back never fails
	if len(fetched) == 1 {
		delete(c.claims, string(name))
	} else {
		c.claims[string(name)] = fetched[1:]
	}
	return err
}

// giveBack makes the messages that were fetched and not deleted visible again, at the end of the
// connection.
func (c *consumer) giveBack() {
	for _, fetched := range c.claims {
		for _, claim := range fetched {
			if err := claim.GiveBack(nil); err != nil {
				c.s.logFailure(err)
			}
		}
	}
	c.claims = nil
}

// deadline returns when a get that begins now stops waiting for messages.
func (c *consumer) deadline() time.Time { return time.Now().Add(c.s.opts.QueueTimeout) }

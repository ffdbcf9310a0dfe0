package server

import (
	"fmt"

	"gotycoon/db/expr"
	"gotycoon/services/sequence"
)

// checkValues finds values that the services would refuse when they start.
func (c *ServicesConfig) checkValues() error {
	switch {
	case c.Reserve < 0 || c.Reserve > sequence.MaxReserve:
		return fmt.Errorf("-sequence-reserve: %d is not within 0 to %d", c.Reserve, sequence.MaxReserve)
	case c.ServerNo < 0 || c.ServerNo > sequence.MaxServerNo:
		return fmt.Errorf("-sequence-server-no: %d is not within 0 to %d", c.ServerNo, sequence.MaxServerNo)
	case c.Limit < 0:
		return fmt.Errorf("-quota-limit: %d is negative", c.Limit)
	}
	text := c.database()
	if text == "" {
		return nil
	}
	if expr, err := expr.Parse(text); err == nil && !expr.Kind.OnDisk() { // opening it tells the other errors
		return fmt.Errorf("-services: %s is no database file, and what locks, sequences and quotas keep must survive the process", text)
	}
	return nil
}

// services notes options of services that are off.
func (e *examiner) services() {
	c := &e.cfg.Services
	for _, row := range []struct {
		given        bool
		option, port string
		on           bool
	}{
		{c.CounterConns != 0, "-counter-max-connections", "-counter-port", c.CounterPort != 0},
		{c.CounterBuckets != 0, "-counter-buckets", "-counter-port", c.CounterPort != 0},
		{c.CounterInterval != 0, "-counter-stats-interval", "-counter-port", c.CounterPort != 0},
		{c.LockTTL != 0, "-lock-max-ttl", "-lock-port", c.LockPort != 0},
		{c.LockKeys != 0, "-lock-max-keys", "-lock-port", c.LockPort != 0},
		{c.LockWaiters != 0, "-lock-max-waiters", "-lock-port", c.LockPort != 0},
		{c.LockStrict, "-lock-strict", "-lock-port", c.LockPort != 0},
		{c.Reserve != 0, "-sequence-reserve", "-sequence-port", c.SequencePort != 0},
		{c.ServerNo != 0, "-sequence-server-no", "-sequence-port", c.SequencePort != 0},
		{c.Limit != 0, "-quota-limit", "-quota-port", c.QuotaPort != 0},
		{c.Export != "", "-quota-export", "-quota-port", c.QuotaPort != 0},
	} {
		if row.given && !row.on {
			e.notes = append(e.notes, fmt.Sprintf("%s: has no effect without %s", row.option, row.port))
		}
	}
}

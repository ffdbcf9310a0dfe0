package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
	"gotycoon/services/counter"
	"gotycoon/services/leader"
	"gotycoon/services/lock"
	"gotycoon/services/sequence"
)

// DefaultServices is the database file in which services keep their state.
const DefaultServices = "services.kct"

// ServicesConfig is which protocols are served on ports of their own. Port 0 is off.
type ServicesConfig struct {
	CounterPort     int           // counters of yrmcds (-counter-port)
	CounterConns    int           // their connections at most (-counter-max-connections); 0: no limit
	CounterBuckets  int           // size of their hash table (-counter-buckets); 0: counter.DefaultBuckets
	CounterInterval time.Duration // of their maxima (-counter-stats-interval); 0: counter.DefaultStatsInterval

	LockPort    int           // locks of JESync (-lock-port)
	LockTTL     time.Duration // longest time that a lock is held without renewal (-lock-max-ttl); 0: 68 years
	LockKeys    int           // keys in use at most (-lock-max-keys); 0: lock.DefaultMaxKeys
	LockWaiters int           // waiting requests at most (-lock-max-waiters); 0: lock.DefaultMaxWaiters
	LockStrict  bool          // no request overtakes another (-lock-strict)

	SequencePort int // coconut's sequence numbers (-sequence-port)
	Reserve      int // their reserve field (-sequence-reserve)
	ServerNo     int // their server_no field (-sequence-server-no)

	QuotaPort int    // coconut's quotas (-quota-port)
	Limit     int64  // amount of a new quota (-quota-limit)
	Export    string // file for its journals (-quota-export); empty: none

	Database string // expression of the database file for the state of locks, sequences and quotas (-services); empty: DefaultServices
}

// shortestInterval is the least that yrmcds takes.
const shortestInterval = 10 * time.Second

// check finds values that no service can have.
func (c *ServicesConfig) check() error {
	for _, row := range []struct {
		option string
		value  int64
		most   int64
	}{
		{"-counter-port", int64(c.CounterPort), math.MaxUint16}, {"-lock-port", int64(c.LockPort), math.MaxUint16},
		{"-sequence-port", int64(c.SequencePort), math.MaxUint16}, {"-quota-port", int64(c.QuotaPort), math.MaxUint16},
		{"-counter-max-connections", int64(c.CounterConns), math.MaxInt64}, {"-counter-buckets", int64(c.CounterBuckets), math.MaxInt64},
		{"-lock-max-ttl", int64(c.LockTTL), math.MaxInt64}, {"-lock-max-keys", int64(c.LockKeys), math.MaxInt64},
		{"-lock-max-waiters", int64(c.LockWaiters), math.MaxInt64},
	} {
		switch {
		case row.value < 0:
			return fmt.Errorf("%s: it cannot be negative", row.option)
		case row.value > row.most:
			return fmt.Errorf("%s: %d is more than %d", row.option, row.value, row.most)
		}
	}
	if c.CounterInterval != 0 && c.CounterInterval < shortestInterval {
		return fmt.Errorf("-counter-stats-interval: it is at least %v", shortestInterval)
	}
	return nil
}

// database returns the expression of the services' database, empty when no service needs one and none is wanted as a copy of a master's.
func (c *ServicesConfig) database() string {
	if c.Database != "" {
		return c.Database
	}
	if c.LockPort == 0 && c.SequencePort == 0 && c.QuotaPort == 0 {
		return ""
	}
	return DefaultServices
}

// service is one protocol with a port of its own. Its connections live across restarts of the data port's listener.
type service interface {
	Start(net.Listener) // the listener belongs to the service from now on
	Close() error       // ends everything that Start began
}

// services are the ones that run.
type services []service

// servicesOptions are what the services need.
type servicesOptions struct {
	ServicesConfig
	Host     string // as an IPv4 address, or empty
	DB       *db.DB // the services' database; nil without one
	SID      uint16
	Role     *leader.Role // nil without DB
	Access   *access.Guard
	Pages    *browser.Policy
	MaxConns int
	Limits   *netio.Limits
	Timeout  time.Duration
	Meters   *meters
	Secure   func(net.Listener) net.Listener
	Log      logger
}

// openServices starts what the configuration asks for, or nothing.
func openServices(o servicesOptions) (services, error) {
	var running services
	for _, row := range []struct {
		name string
		port int
		open func() (service, error)
	}{
		{"counter", o.CounterPort, o.newCounters},
		{"lock", o.LockPort, o.newLocks},
		{"sequence", o.SequencePort, o.newSequences},
		{"quota", o.QuotaPort, o.newQuotas},
	} {
		if row.port == 0 {
			continue
		}
		s, err := o.startService(row.port, row.open)
		if err != nil {
			running.close(o.Log)
			return nil, fmt.Errorf("starting the %s server: %w", row.name, err)
		}
		running = append(running, s)
		o.Log.system("%s server started: expr=%s:%d", row.name, o.Host, row.port)
	}
	return running, nil
}

func (o *servicesOptions) startService(port int, open func() (service, error)) (service, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", net.JoinHostPort(o.Host, strconv.Itoa(port)))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Start(o.Secure(l))
	return s, nil
}

// close ends the services in the opposite order, and reports whether all went well.
func (running services) close(log logger) bool {
	ok := true
	for i := len(running) - 1; i >= 0; i-- {
		if err := running[i].Close(); err != nil {
			log.error("closing a service: %v", err)
			ok = false
		}
	}
	return ok
}

func (o *servicesOptions) newCounters() (service, error) {
	return counter.New(counter.Options{
		MaxConns:      fewer(o.CounterConns, o.MaxConns),
		Limits:        o.Limits,
		Buckets:       o.CounterBuckets,
		StatsInterval: o.CounterInterval,
		Timeout:       o.Timeout,
		Access:        o.Access,
		Meter:         o.Meters.meter,
		Requests:      o.Meters.counter,
		Logger:        o.Log.Logger,
	}), nil
}

func (o *servicesOptions) newLocks() (service, error) {
	fences, err := lock.DatabaseFences(o.DB, o.SID)
	if err != nil {
		return nil, err
	}
	return lock.New(lock.Options{
		MaxTTL:      o.LockTTL,
		MaxKeys:     o.LockKeys,
		MaxWaiters:  o.LockWaiters,
		StrictOrder: o.LockStrict,
		Fences:      fences,
		Primary:     o.Role,
		MaxConns:    o.MaxConns,
		Limits:      o.Limits,
		Timeout:     o.Timeout,
		Access:      o.Access,
		Meter:       o.Meters.meter,
		Requests:    o.Meters.lock,
		Logger:      o.Log.Logger,
	})
}

func (o *servicesOptions) newSequences() (service, error) {
	return sequence.NewSequenceServer(sequence.SequenceOptions{
		DB:       o.DB,
		Reserve:  o.Reserve,
		ServerNo: o.ServerNo,
		SID:      o.SID,
		Primary:  o.Role,
		Limits:   o.portLimits(),
		Timeout:  o.Timeout,
		Access:   o.Access,
		Meter:    o.Meters.meter,
		Requests: o.Meters.sequence,
		Logger:   o.Log.Logger,
	})
}

func (o *servicesOptions) newQuotas() (service, error) {
	return sequence.NewQuotaServer(sequence.QuotaOptions{
		DB:       o.DB,
		Limit:    o.Limit,
		Export:   o.Export,
		Primary:  o.Role,
		Limits:   o.portLimits(),
		Timeout:  o.Timeout,
		Access:   o.Access,
		Meter:    o.Meters.meter,
		Requests: o.Meters.quota,
		Logger:   o.Log.Logger,
	})
}

// portLimits are those of coconut's ports.
func (o *servicesOptions) portLimits() sequence.Limits {
	return sequence.Limits{MaxConns: o.MaxConns, Conns: o.Limits, Pages: o.Pages}
}

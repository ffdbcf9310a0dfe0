package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"gotycoon/services/counter"
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

// openServices starts what the configuration asks for, or nothing.
func (p *process) openServices() (services, error) {
	var running services
	for _, row := range []struct {
		name string
		port int
		open func() (service, error)
	}{
		{"counter", p.cfg.Services.CounterPort, p.newCounters},
		{"lock", p.cfg.Services.LockPort, p.newLocks},
		{"sequence", p.cfg.Services.SequencePort, p.newSequences},
		{"quota", p.cfg.Services.QuotaPort, p.newQuotas},
	} {
		if row.port == 0 {
			continue
		}
		s, err := p.startService(row.port, row.open)
		if err != nil {
			running.close(p.log)
			return nil, fmt.Errorf("starting the %s server: %w", row.name, err)
		}
		running = append(running, s)
		p.log.system("%s server started: expr=%s:%d", row.name, p.host, row.port)
	}
	return running, nil
}

func (p *process) startService(port int, open func() (service, error)) (service, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", net.JoinHostPort(p.host, strconv.Itoa(port)))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Start(p.secure(l))
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

func (p *process) newCounters() (service, error) {
	return counter.New(counter.Options{
		MaxConns:      fewer(p.cfg.Services.CounterConns, p.cfg.Limits.conns()),
		Limits:        &p.tuned.limits,
		Buckets:       p.cfg.Services.CounterBuckets,
		StatsInterval: p.cfg.Services.CounterInterval,
		Timeout:       p.cfg.Timeout,
		Access:        p.access,
		Meter:         p.admin.meter,
		Requests:      p.admin.meters.counter,
		Logger:        p.log.Logger,
	}), nil
}

func (p *process) newLocks() (service, error) {
	fences, err := lock.DatabaseFences(p.catalog.Services(), p.sid())
	if err != nil {
		return nil, err
	}
	return lock.New(lock.Options{
		MaxTTL:      p.cfg.Services.LockTTL,
		MaxKeys:     p.cfg.Services.LockKeys,
		MaxWaiters:  p.cfg.Services.LockWaiters,
		StrictOrder: p.cfg.Services.LockStrict,
		Fences:      fences,
		Primary:     p.role,
		MaxConns:    p.cfg.Limits.conns(),
		Limits:      &p.tuned.limits,
		Timeout:     p.cfg.Timeout,
		Access:      p.access,
		Meter:       p.admin.meter,
		Requests:    p.admin.meters.lock,
		Logger:      p.log.Logger,
	})
}

func (p *process) newSequences() (service, error) {
	return sequence.NewSequenceServer(sequence.SequenceOptions{
		DB:       p.catalog.Services(),
		Reserve:  p.cfg.Services.Reserve,
		ServerNo: p.cfg.Services.ServerNo,
		SID:      p.sid(),
		Primary:  p.role,
		Limits:   p.portLimits(),
		Timeout:  p.cfg.Timeout,
		Access:   p.access,
		Meter:    p.admin.meter,
		Requests: p.admin.meters.sequence,
		Logger:   p.log.Logger,
	})
}

func (p *process) newQuotas() (service, error) {
	return sequence.NewQuotaServer(sequence.QuotaOptions{
		DB:       p.catalog.Services(),
		Limit:    p.cfg.Services.Limit,
		Export:   p.cfg.Services.Export,
		Primary:  p.role,
		Limits:   p.portLimits(),
		Timeout:  p.cfg.Timeout,
		Access:   p.access,
		Meter:    p.admin.meter,
		Requests: p.admin.meters.quota,
		Logger:   p.log.Logger,
	})
}

// portLimits are those of coconut's ports.
func (p *process) portLimits() sequence.Limits {
	return sequence.Limits{MaxConns: p.cfg.Limits.conns(), Conns: &p.tuned.limits, Pages: p.pages}
}

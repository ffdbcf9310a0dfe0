package server

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"gotycoon/db"
	"gotycoon/db/expr"
	"gotycoon/internal/metrics"
	"gotycoon/services"
	"gotycoon/services/counter"
	"gotycoon/services/leader"
	"gotycoon/services/lock"
	"gotycoon/services/quota"
	"gotycoon/services/sequence"
)

// DefaultServices is the database file in which services keep their state.
const DefaultServices = "services.kct"

// ServicesConfig has the options of the services. A service whose port is 0 is off.
type ServicesConfig struct {
	CounterPort  int // counters of yrmcds (-counter-port)
	CounterConns int // most connections to the counters (-counter-max-connections); 0: no limit

	// CounterBuckets is the size of the counters' hash table (-counter-buckets). 0 means
	// counter.DefaultBuckets.
	CounterBuckets int

	// CounterInterval is how long a counter keeps its maximum (-counter-stats-interval). 0 means
	// counter.DefaultStatsInterval.
	CounterInterval time.Duration

	LockPort    int           // locks of JESync (-lock-port)
	LockTTL     time.Duration // longest EXPIRES of a lock (-lock-max-ttl); 0: 68 years
	LockKeys    int           // most keys in use (-lock-max-keys); 0: package lock's DefaultMaxKeys
	LockWaiters int           // most waiting requests (-lock-max-waiters); 0: DefaultMaxWaiters
	LockStrict  bool          // no request overtakes another (-lock-strict)

	SequencePort int // coconut's sequence numbers (-sequence-port)
	Reserve      int // the numbers' reserve field (-sequence-reserve)
	ServerNo     int // the numbers' server_no field (-sequence-server-no)

	QuotaPort int    // coconut's quotas (-quota-port)
	Limit     int64  // amount of a new quota without a name (-quota-limit)
	Export    string // file for the quotas' journals (-quota-export); empty: none

	// Database is the expression of the services' database (-services): a file for sequences,
	// quotas, the bounds of fencing tokens and the claims to be the primary. Empty means
	// DefaultServices.
	Database string
}

// serviceRow is what the server has to know of a service.
type serviceRow struct {
	name    string
	port    int  // 0: the service is off
	keeps   bool // it keeps records in the services' database
	options []serviceOption
	metrics []metrics.Definition
	open    func(o *servicesOptions) (services.Service, error)
}

// portOption returns the option that sets the port.
func (r *serviceRow) portOption() string { return "-" + r.name + "-port" }

// table has a row for each service. A further service is a package below services and a row here;
// everything else in the server goes by these rows and by services.Service.
func (c *ServicesConfig) table() []serviceRow {
	return []serviceRow{
		{
			name: counter.Name, port: c.CounterPort, metrics: counter.Metrics(),
			options: []serviceOption{
				amount("-counter-max-connections", c.CounterConns), amount("-counter-buckets", c.CounterBuckets),
				interval("-counter-stats-interval", c.CounterInterval),
			},
			open: func(o *servicesOptions) (services.Service, error) {
				common := o.Options
				common.MaxConns = fewer(c.CounterConns, o.MaxConns)
				return counter.New(counter.Options{Options: common, Buckets: c.CounterBuckets, StatsInterval: c.CounterInterval}), nil
			},
		},
		{
			name: lock.Name, port: c.LockPort, keeps: true, metrics: lock.Metrics(),
			options: []serviceOption{
				amount("-lock-max-ttl", c.LockTTL), amount("-lock-max-keys", c.LockKeys), amount("-lock-max-waiters", c.LockWaiters),
				{name: "-lock-strict", given: c.LockStrict},
			},
			open: func(o *servicesOptions) (services.Service, error) {
				fences, err := lock.DatabaseFences(o.DB, o.SID)
				if err != nil {
					return nil, err
				}
				return lock.New(lock.Options{
					Options: o.Options, Fences: fences, Primary: o.Role,
					MaxTTL: c.LockTTL, MaxKeys: c.LockKeys, MaxWaiters: c.LockWaiters, StrictOrder: c.LockStrict,
				})
			},
		},
		{
			name: sequence.Name, port: c.SequencePort, keeps: true, metrics: sequence.Metrics(),
			options: []serviceOption{
				within("-sequence-reserve", c.Reserve, sequence.MaxReserve), within("-sequence-server-no", c.ServerNo, sequence.MaxServerNo),
			},
			open: func(o *servicesOptions) (services.Service, error) {
				return sequence.New(sequence.Options{Options: o.Options, DB: o.DB, SID: o.SID, Primary: o.Role, Reserve: c.Reserve, ServerNo: c.ServerNo})
			},
		},
		{
			name: quota.Name, port: c.QuotaPort, keeps: true, metrics: quota.Metrics(),
			options: []serviceOption{notNegative("-quota-limit", c.Limit), {name: "-quota-export", given: c.Export != ""}},
			open: func(o *servicesOptions) (services.Service, error) {
				return quota.New(quota.Options{Options: o.Options, DB: o.DB, Primary: o.Role, Limit: c.Limit, Export: c.Export})
			},
		},
	}
}

// check finds values that no service can have, so that the start fails before anything is opened.
func (c *ServicesConfig) check() error {
	table := c.table()
	for i := range table {
		row := &table[i]
		if wrong := amount(row.portOption(), row.port).wrong; wrong != nil {
			return wrong
		}
		if row.port > math.MaxUint16 {
			return fmt.Errorf("%s: %d is more than %d", row.portOption(), row.port, math.MaxUint16)
		}
	}
	for i := range table {
		for _, o := range table[i].options {
			if o.wrong != nil {
				return o.wrong
			}
		}
	}
	text := c.database()
	if text == "" {
		return nil
	}
	// Errors of Parse are reported when the database is opened.
	if expr, err := expr.Parse(text); err == nil && !expr.Kind.OnDisk() {
		return fmt.Errorf("-services: %s is no database file, and what locks, sequences and quotas keep must survive the process", text)
	}
	return nil
}

// notes returns a line for each option of a service that is off.
func (c *ServicesConfig) notes() (notes []string) {
	for _, row := range c.table() {
		for _, o := range row.options {
			if o.given && row.port == 0 {
				notes = append(notes, fmt.Sprintf("%s: has no effect without %s", o.name, row.portOption()))
			}
		}
	}
	return notes
}

// on reports whether there is a service.
func (c *ServicesConfig) on() bool {
	return slices.ContainsFunc(c.table(), func(r serviceRow) bool { return r.port != 0 })
}

// database returns the expression of the services' database. It is empty if no service needs the
// database, and the server is not to keep a copy of a master's.
func (c *ServicesConfig) database() string {
	if c.Database != "" {
		return c.Database
	}
	if slices.ContainsFunc(c.table(), func(r serviceRow) bool { return r.keeps && r.port != 0 }) {
		return DefaultServices
	}
	return ""
}

// servicesOptions are what the services are given.
type servicesOptions struct {
	services.Options // of all of them

	Host   string       // as an IPv4 address, or empty
	DB     *db.DB       // the services' database; nil without one
	SID    uint16       // this server's ID in replication
	Role   *leader.Role // nil without DB
	Secure func(net.Listener) net.Listener
	Log    logger
}

// running are the services that run. Their connections outlive restarts of the data port's
// listener.
type running []services.Service

// open starts the services whose ports are given.
func (c *ServicesConfig) open(o *servicesOptions) (running, error) {
	var all running
	for _, row := range c.table() {
		if row.port == 0 {
			continue
		}
		s, err := row.start(o)
		if err != nil {
			all.close(o.Log)
			return nil, fmt.Errorf("starting the %s server: %w", row.name, err)
		}
		all = append(all, s)
		o.Log.system("%s server started: expr=%s:%d", row.name, o.Host, row.port)
	}
	return all, nil
}

func (r *serviceRow) start(o *servicesOptions) (services.Service, error) {
	s, err := r.open(o)
	if err != nil {
		return nil, err
	}
	l, err := bind(o.Host, r.port)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Start(o.Secure(l))
	return s, nil
}

// adopters adds the functions by which connections of other members come to the services.
func (all running) adopters(ports map[string]func(net.Conn) bool) {
	for _, s := range all {
		ports[s.Name()] = s.Adopt
	}
}

// cut closes the connections of all services.
func (all running) cut() {
	for _, s := range all {
		s.Cut()
	}
}

// close ends the services in the opposite order, and reports whether nothing failed.
func (all running) close(log logger) bool {
	ok := true
	for _, s := range slices.Backward(all) {
		if err := s.Close(); err != nil {
			log.error("closing a service: %v", err)
			ok = false
		}
	}
	return ok
}

package server

import (
	"errors"
	"time"

	"gotycoon/internal/procinfo"
)

// LimitsConfig is how much clients may use, and the limits of memory and disk at which updates are
// refused. 0 is no limit where nothing else is said.
type LimitsConfig struct {
	Conns    int   // connections of each port (-max-connections); 0: see conns
	Watches  int   // clients that watch at a time (-max-watches)
	Request  int64 // bytes of a request (-max-request); 0: what each protocol allows
	InFlight int64 // bytes that requests may hold, all together (-max-inflight); 0: see inFlight

	RequestTime time.Duration // for a request to arrive, and a second for each KiB (-request-time)
	AnswerTime  time.Duration // for which a request is served (-answer-time)
	Idle        time.Duration // between two requests of a connection (-idle)

	// At these limits updates are refused, see room.
	Memory  int64 // bytes of the process, for records in memory (-memory); 0: see memory
	MaxSize int64 // bytes of all records (-max-size)
	MinFree int64 // bytes kept free on the disk, or a sixteenth of a small disk (-min-free)
}

const (
	defaultWatches     = 1000
	defaultRequestTime = 60 * time.Second
	defaultAnswerTime  = 5 * time.Minute
	defaultMinFree     = 64 << 20

	filesKept   = 256      // open files that are not for connections of a port
	connMemory  = 64 << 10 // memory of a connection, with room for what it does
	fewestConns = 64
	inFlightOf  = 3 // of the memory,
	inFlightIn  = 8 // three eighths
	inFlightMin = 16 << 20
	memoryOf    = 4 // of the memory that the control group allows,
	memoryIn    = 5 // four fifths
)

func defaultLimits() LimitsConfig {
	return LimitsConfig{Watches: defaultWatches, RequestTime: defaultRequestTime, AnswerTime: defaultAnswerTime, MinFree: defaultMinFree}
}

// check finds values that no server can have.
func (c *LimitsConfig) check() error {
	if c.Watches < 1 {
		return errors.New("-max-watches must be above 0")
	}
	return notBelowZero(
		amount("-max-connections", c.Conns), amount("-max-request", c.Request), amount("-max-inflight", c.InFlight),
		amount("-request-time", c.RequestTime), amount("-answer-time", c.AnswerTime), amount("-idle", c.Idle),
		amount("-memory", c.Memory), amount("-max-size", c.MaxSize), amount("-min-free", c.MinFree),
	)
}

// conns returns how many connections a port may have: as many as memory and open files allow, where
// the configuration does not say it.
func (c *LimitsConfig) conns() int {
	if c.Conns > 0 {
		return c.Conns
	}
	most := int64(1 << 20)
	if files := procinfo.OpenFiles(); files > 0 {
		most = min(most, files-filesKept)
	}
	if memory := c.available(); memory > 0 {
		most = min(most, memory/connMemory)
	}
	return int(max(most, fewestConns))
}

// available returns the bytes of memory that the process may have: the least of the machine's
// memory, the limit of the control group, and -memory. 0 means that none of them is known.
func (c *LimitsConfig) available() int64 {
	available := procinfo.MemoryLimit()
	if c.Memory > 0 && (available == 0 || c.Memory < available) {
		return c.Memory
	}
	return available
}

// memory returns the bytes of the process from which on records in memory may not grow, 0 for any
// number. A control group that limits memory kills a process that takes more, without a line in its
// log; so there is a limit in such a group, whether -memory is given or not.
func (c *LimitsConfig) memory() int64 {
	if c.Memory > 0 {
		return c.Memory
	}
	return procinfo.GroupLimit() / memoryIn * memoryOf
}

// inFlight returns the bytes that the requests of all connections may hold together: three eighths
// of the memory, where the configuration does not say it.
func (c *LimitsConfig) inFlight() int64 {
	if c.InFlight > 0 {
		return c.InFlight
	}
	return max(c.available()/inFlightIn*inFlightOf, inFlightMin)
}

// scripts returns the bytes that the texts of scripts may take together where -scrmem does not
// limit them; 0 for any number.
func (c *LimitsConfig) scripts() int64 {
	const part = 4
	return c.available() / part
}

// fewer returns the lesser of two limits, of which own may be 0 for none.
func fewer(own, all int) int {
	if own > 0 {
		return min(own, all)
	}
	return all
}

package server

import (
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"gotycoon/db"
)

// tell passes a state to the service manager that has started the process (sd_notify). There is none without the variable
// NOTIFY_SOCKET.
func (p *process) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.error("telling the service manager failed: %v", err)
	}
}

// watchdogEvery is how often the service manager wants to hear from the process, with room for a late answer; 0: it does not.
func (p *process) watchdogEvery() time.Duration {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		p.log.error("reading the limit of the service manager's watchdog failed: %v", err)
		return 0
	}
	return limit / 3
}

// feedWatchdog tells the service manager that the server works: it does when a record of each database can be looked for. One
// that hangs is ended by the manager, and started again.
func (p *process) feedWatchdog() {
	for i := range p.catalog.Len() {
		var owed db.Pending // a slow disk is no reason to be ended
		if _, _, err := p.catalog.DB(i).Check(&owed, nil); err != nil && p.catalog.Err() != nil {
			return
		}
	}
	p.tell(daemon.SdNotifyWatchdog)
}

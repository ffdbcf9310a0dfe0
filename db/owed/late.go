package owed

// Late is a commit that several operations share, of any clients: each of them has changed in
// memory what the commit will write, and its client has not been told yet. So a round of small
// updates takes one commit instead of one each.
//
//	operation                       Defer(late)    │ Defer(late)  │ Defer(late)
//	before its reply leaves: Wait   Finish: commit │ Finish: done │ Finish: done
type Late interface {
	// Finish makes the commit, unless it has been made, and adds to p what the reply to the client
	// of p waits for. After an error the client is told nothing, and what its operation has changed
	// is taken back.
	Finish(p *Pending) error
}

// Defer notes a commit that Wait and WaitLogs see to before they wait.
func (p *Pending) Defer(l Late) {
	if n := len(p.late); n == 0 || p.late[n-1] != l {
		p.late = append(p.late, l)
	}
}

// finish sees to the commits that were put off.
func (p *Pending) finish() error {
	var first error
	before := p.confirms
	for _, l := range p.late {
		if err := l.Finish(p); first == nil {
			first = err
		}
	}
	p.forgetLate()
	p.lateConfirms = p.confirms != before
	return first
}

// ConfirmsLate reports whether a commit that was put off before the latest wait owes something to
// other servers: then nobody knows which replies wait for it.
func (p *Pending) ConfirmsLate() bool { return p.lateConfirms }

// keepLate is how many commits a list has room for at most that is kept.
const keepLate = 4

func (p *Pending) forgetLate() {
	clear(p.late)
	if p.late = p.late[:0]; cap(p.late) > keepLate {
		p.late = nil
	}
}

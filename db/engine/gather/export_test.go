package gather

// AlwaysGuess makes lanes assume what they know, however often they are wrong. It is called before
// the first operation.
func (g *Gather) AlwaysGuess() {
	for _, l := range g.lanes {
		l.known.credit = 1 << 40
	}
}

// Callers is what a lane knows of those whom it answers.
type Callers struct{ known callers }

// LetIn lets callers in when some were answered.
func (c *Callers) LetIn(answered int, waiting func() int) { c.known.letIn(answered, waiting) }

// Known returns how many records the lanes know, and about their bytes without those of the older
// generation. No operation is under way.
func (g *Gather) Known() (records, bytes int) {
	for _, l := range g.lanes {
		records += len(l.known.young) + len(l.known.old)
		bytes += l.known.bytes
	}
	return records, bytes
}

// Waiting returns the operations in the queues of the lanes, and the bytes that they bring.
func (g *Gather) Waiting() (operations, bytes int) {
	for _, l := range g.lanes {
		l.mu.Lock()
		operations += len(l.queue)
		for _, t := range l.queue {
			for i := range t.op.Updates {
				bytes += len(t.op.Updates[i].Value)
			}
		}
		l.mu.Unlock()
	}
	return operations, bytes
}

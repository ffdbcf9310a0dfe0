package ulog

// Progress says how far the disk has come with what somebody waits for. Of two of them that were
// taken at different times, the later one is equal to the earlier one, with Waiting, only if the
// disk has finished nothing in between: it hangs, or is as slow as that.
//
// An fsync in the background, for which no update waits, is no such work: it may take long while a
// checkpoint or a snapshot writes, and nobody notices.
type Progress struct {
	// Waiting: a group of updates is being written, and synced with SyncEach, or the followers'
	// next heartbeats wait for a promise (promise.go).
	Waiting bool

	Taken, Safe, Synced, Kept Stamp // each grows when a step is done
}

// Progress returns how far the disk has come. It never waits for the disk.
func (l *Log) Progress() Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.queue.phase == writing || l.promising > 0
	return Progress{waiting && l.err == nil, l.queue.taken, l.safe.last, l.synced.last, l.kept}
}

// promises counts the goroutines that wait for a promise.
func (l *Log) promises(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promising += n
}

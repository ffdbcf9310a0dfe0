package server

import (
	"errors"
	"fmt"
	"time"

	"gotycoon/db"
	"gotycoon/internal/words"
	"gotycoon/replication"
)

// SyncConfig says which followers must have an update before it is answered.
type SyncConfig struct {
	Replicas int           // so many of them (-sync-replicas); 0: none
	Timeout  time.Duration // wait for them so long (-sync-timeout)
	Degrade  bool          // then go on without them, and do not refuse (-sync-degrade)
}

var errSyncLog = errors.New("-sync-replicas: followers are fed from an update log, so the server needs one (-ulog DIR -sid N)")

func (s *SyncConfig) check(updateLog string) error {
	switch {
	case s.Replicas < 0 || s.Replicas > replication.MaxReplicas:
		return fmt.Errorf("-sync-replicas %d: it is 0 to %d", s.Replicas, replication.MaxReplicas)
	case s.Replicas > 0 && updateLog == "":
		return errSyncLog
	case s.Timeout <= 0:
		return errors.New("-sync-timeout: it is above 0; with -sync-degrade a short time answers without followers soon")
	}
	return nil
}

// openQuorum has answers to clients wait for followers, where the server, a database or a request
// says so. It is opened before anybody can ask, and is nil without an update log.
// In a cluster the members say how many followers are required, and of whom.
func openQuorum(s SyncConfig, sid uint16, clustered bool, catalog *db.Catalog, log logger) (*replication.Quorum, error) {
	most := 0
	for _, d := range catalog.All() {
		most = max(most, d.Replicas())
	}
	switch {
	case most > replication.MaxReplicas:
		return nil, fmt.Errorf("syncrep=%d of a database: it is 0 to %d", most, replication.MaxReplicas)
	case most > 0 && catalog.Log() == nil:
		return nil, fmt.Errorf("syncrep=%d of a database: %w", most, errSyncLog)
	case catalog.Log() == nil:
		return nil, nil
	}
	if clustered {
		s.Replicas = 0
	}
	q := replication.NewQuorum(replication.QuorumOptions{
		Log: catalog.Log(), SID: sid, Required: s.Replicas, Always: clustered, Databases: most, Timeout: s.Timeout, Degrade: s.Degrade, Logger: log.Logger,
	})
	if s.Replicas > 0 {
		log.info("%s", s.promise())
	}
	return q, nil
}

// promise says what an acknowledgement means beside durability.
func (s *SyncConfig) promise() string {
	then := "are refused"
	if s.Degrade {
		then = "are answered without them"
	}
	return fmt.Sprintf("updates are answered when %s them; after %v without them updates %s", words.FollowersHave(s.Replicas), s.Timeout, then)
}

package server

import (
	"fmt"
	"strings"
	"time"

	"gotycoon/db"
)

// This file has the alarms that belong to no part of the server alone. The others are beside what
// they are about: room, replicas, clusterShown and following each have a method alarms.

// alarmSources are the parts that have alarms.
type alarmSources struct {
	catalog      *db.Catalog
	shared       *sharedEngine // nil: there is none
	room         *room
	replicas     *replicas
	following    *following
	readyLag     time.Duration // see AdminConfig.ReadyLag
	cluster      *clusterShown // nil: in none
	certificates certificates
}

// list returns the functions that say what is wrong.
func (s *alarmSources) list() []func(now time.Time) []alarm {
	all := []func(time.Time) []alarm{
		func(time.Time) []alarm { return logAlarms(s.catalog) },
		func(time.Time) []alarm { return engineAlarms(s.catalog, s.shared) },
		s.room.alarms,
		s.replicas.alarms,
		func(now time.Time) []alarm { return s.following.alarms(now, s.readyLag) },
		func(time.Time) []alarm { return fileAlarms(s.catalog) },
		s.certificates.alarms,
	}
	if s.cluster != nil {
		all = append(all, s.cluster.alarms)
	}
	return all
}

// logAlarms tells of an update log that could not be written.
func logAlarms(c *db.Catalog) []alarm {
	err := c.Err()
	if err == nil {
		return nil
	}
	return []alarm{{name: alarmLog, text: fmt.Sprintf(
		"failed: no update is acknowledged any more, and the server ends: %v. Make room or replace the disk, then start the server again: "+
			"what was acknowledged is there", err)}}
}

// fileAlarms tells of database files that cannot be written or merged, and of databases that were
// opened without acknowledged updates.
func fileAlarms(c *db.Catalog) (all []alarm) {
	var lacking []string
	for _, d := range c.All() {
		if err := d.CheckpointError(); err != nil {
			all = append(all, alarm{name: alarmFile, text: fmt.Sprintf(
				"the file %s cannot be written, its updates stay in memory and in the update log: %v", d.Info().Path, err)})
		}
		if err := d.MergeError(); err != nil {
			all = append(all, alarm{name: alarmFile, text: fmt.Sprintf(
				"the file %s takes updates, but they cannot be merged into its records: "+
					"it grows, and requests get slower: %v", d.Info().Path, err)})
		}
		if d.Info().PassedOver != nil {
			lacking = append(lacking, d.Info().Path)
		}
	}
	if len(lacking) > 0 {
		all = append(all, alarm{name: alarmPassedOver, text: fmt.Sprintf(
			"opened without acknowledged updates that only the update log has: %s. The log of this start, the report and the section "+
				"Databases of the console have the command that brings them in", strings.Join(lacking, ", "))})
	}
	return all
}

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

var (
	errNoServerID    = errors.New("update log requires the server ID")
	errFollowerID    = errors.New("replication requires the server ID")
	errFollowerRTS   = errors.New("replication requires the replication time stamp file")
	errManyDatabases = errors.New("too much databases")
)

// check finds what is wrong with the configuration, before anything is opened. Only the directory
// of snapshots is made.
func (c *Config) check() error {
	if err := c.checkDaemonPaths(); err != nil {
		return err
	}
	if err := c.checkEngine(); err != nil {
		return err
	}
	switch {
	case c.UpdateLog != "" && c.ServerID < 0:
		return errNoServerID
	case c.MasterHost != "" && c.ServerID < 0 && !c.Cluster.on():
		return errFollowerID
	case c.MasterHost != "" && c.RTSPath == "" && !c.Cluster.on():
		return errFollowerRTS
	case c.ServerID > maxServerID:
		return fmt.Errorf("%d: the server ID is at most %d", c.ServerID, maxServerID)
	case len(c.Databases) > MaxDatabases:
		return errManyDatabases
	}
	for _, check := range []func() error{
		func() error { return c.checkLive(c.UpdateLog != "") },
		c.Snapshots.check,
		func() error { return c.Sync.check(c.UpdateLog) },
		func() error { return c.Plugins.check(c.Databases) },
		c.Services.check,
		c.TLS.check,
		c.Members.check,
		c.checkCluster,
		c.checkForward,
		c.Admin.check,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if _, err := c.Access.pages(); err != nil {
		return err
	}
	if _, err := os.Stat(c.Script.Path); err != nil && c.Script.Path != "" {
		return fmt.Errorf("%s: no such file", c.Script.Path)
	}
	if info, err := os.Stat(c.CmdDir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: no such directory", c.CmdDir)
	}
	return checkRoleCommand(c.OnRole)
}

// checkLive finds values that no server with or without an update log can have, among those that
// can change while it runs.
func (c *Config) checkLive(logged bool) error {
	if err := checkRatio(c.CompactRatio); err != nil {
		return err
	}
	if err := c.Retention.check(logged); err != nil {
		return err
	}
	return c.Limits.check()
}

// checkForward finds what is missing for -forward.
func (c *Config) checkForward() error {
	if !c.Forward {
		return nil
	}
	return checkForward(c.rtsPath(), c.Members.Secret, c.TLS.MasterCert)
}

// checkDaemonPaths refuses relative paths: a daemon changes its directory, so they would mean
// another file.
func (c *Config) checkDaemonPaths() error {
	if !c.Daemon {
		return nil
	}
	paths := slices.Concat(c.Plugins.paths(), c.TLS.paths(), []string{
		c.LogPath, c.UpdateLog, c.Snapshots.Dir, c.RTSPath, c.PIDPath, c.Script.Path, c.CmdDir, c.Services.Export, c.servicesDatabase(),
		c.Access.Path, c.Members.Secret, c.OnRole, c.Engine.Copies,
	})
	for _, path := range paths {
		if path != "" && path != DefaultConfig().CmdDir && !filepath.IsAbs(path) {
			return fmt.Errorf("%s: a daemon can accept absolute path only", path)
		}
	}
	return nil
}

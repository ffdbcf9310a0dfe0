// Package packages is tests only: it installs, starts, upgrades and removes the Debian package, and
// checks the unit of systemd.
package packages

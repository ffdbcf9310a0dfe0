// Package packages is tests only: the Debian package is installed, started, upgraded and removed, and the unit is checked.
package packages

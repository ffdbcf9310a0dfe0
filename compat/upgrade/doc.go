// Package upgrade is tests only: servers go over to another version of the program and back, one
// after the other, as docs/cluster.md says, while clients update. Nothing that was acknowledged is
// lost, and the longest time without an answer is measured.
//
// GOTYCOON_OLD=DIR names a directory with the programs of an earlier version, which "make
// upgrade-test OLD=REVISION" builds. Without it both versions are the present one: then the
// procedures are tried, and not the formats.
package upgrade

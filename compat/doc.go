// Package compat is tests only: the conversations recorded with the original server, replayed with ours.
//
// testdata holds the recordings. TestGoldens sends what their clients sent and compares what comes back, byte for
// byte except for what changes from run to run; TestLifecycle does the same for starts, signals and log lines.
// DIFFERENCES.md lists the cases that are meant to differ, and why. A case that is listed and does not differ fails
// the test as much as one that differs and is not listed.
//
// The rules of comparison are those under which the recordings were checked against the original; they are never
// loosened to make a case pass.
package compat

// Package compat is tests only: it replays the conversations recorded with the original server
// against our server.
//
// testdata has the recordings. TestGoldens sends what the recorded clients sent, and compares the
// replies byte for byte, but for the parts that differ from run to run. TestLifecycle does the same
// for starts, signals and log lines. DIFFERENCES.md lists the cases that must differ, and why. The
// test fails for a listed case that does not differ, and for an unlisted case that differs.
//
// The rules of comparison are the rules under which the recordings were checked against the
// original. They are never loosened to make a case pass.
package compat

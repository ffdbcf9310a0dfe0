//go:build race

package ktproc

const raceEnabled = true

//go:build !race

package ktproc

const raceEnabled = false

// Package chaos is tests only: servers that replicate each other while their processes are killed, their clocks are set back, and their
// connections are cut, delayed, half open or refused. Afterwards all of them must hold the same, everything acknowledged by a master
// must be there, and the slave agent must have printed each change once.
//
// The tests take some seconds. GOTYCOON_CHAOS=SECONDS makes each of them go on for so long.
package chaos

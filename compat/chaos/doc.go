// Package chaos is tests only: servers replicate each other while their processes are killed, their
// clocks are set back, and their connections are cut, delayed, half open or refused. Afterwards all
// servers must have the same records, every update that a master acknowledged must be there, and
// the slave agent must have printed each update once.
//
// The tests take some seconds. GOTYCOON_CHAOS=SECONDS makes each of them take so long.
package chaos

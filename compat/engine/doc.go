// Package engine is tests only: three servers on one PostgreSQL with a synchronous standby, while
// everything goes wrong. Servers are killed and paused, their connections with PostgreSQL are cut,
// held, slowed down, or lose exactly the answer of a commit; PostgreSQL crashes, its standby hangs
// or is away, and becomes the primary.
//
// Clients of all protocols update and read meanwhile. What they were told must be one history
// (package compat/history has porcupine check it), what was acknowledged must be there, money that
// scripts and atomic bulks move must stay the same sum at every moment, no server may end by
// itself, and each must answer soon after the engine is back.
//
// The test takes some seconds. GOTYCOON_ENGINE_FAULTS=ROUNDS gives the number of faults,
// GOTYCOON_ENGINE_SEED=NUMBER repeats those of an earlier run, though not their timing, and
// GOTYCOON_ENGINE_ONLY="kill, pause" has only some kinds happen.
package engine

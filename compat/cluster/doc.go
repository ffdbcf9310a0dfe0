// Package cluster is tests only: the servers of a cluster are killed, paused, cut off from each
// other and told to hand over, while clients of all protocols update and read. What the clients
// were told must be one history (package porcupine checks it), each update that was acknowledged
// must be on all members in the end, all members must have the same, and no term may have two
// primaries.
//
// The tests take some seconds. GOTYCOON_CLUSTER=ROUNDS gives the number of misfortunes of each
// test, GOTYCOON_CLUSTER_SEED=NUMBER repeats those of an earlier run, though not their timing, and
// GOTYCOON_CLUSTER_ONLY="kill, pause" has only some kinds happen. With GOTYCOON_CLUSTER disks get
// full too, where the test may mount small ones.
package cluster

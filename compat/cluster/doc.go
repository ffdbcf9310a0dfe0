// Package cluster is tests only: the servers of a cluster are killed, paused, cut off from each
// other and told to hand over, while clients of all protocols update and read. What the clients
// were told must be one history (package porcupine checks it), each update that was acknowledged
// must be on all members in the end, all members must have the same, and no term may have two
// primaries.
//
// Clients of locks, sequences and counters have one address, behind which any member takes them and
// moves what it must to the primary: no number is given out twice, and fencing tokens grow. Other
// runs have TLS between the members, or an etcd that holds the votes.
//
// The tests take some seconds. GOTYCOON_CLUSTER=ROUNDS gives the number of misfortunes of each
// test, GOTYCOON_CLUSTER_SEED=NUMBER repeats those of an earlier run, though not their timing, and
// GOTYCOON_CLUSTER_ONLY="kill, pause" has only some kinds happen. With GOTYCOON_CLUSTER disks get
// full, hang and are slow too, where the test may mount small file systems of its own: a hung disk
// is a file system that is frozen (fsfreeze), a slow one is frozen again and again for moments.
// Disks hang for longer than -disk-timeout, which is short here.
package cluster

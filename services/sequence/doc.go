// Package sequence hands out sequence numbers and manages quotas, as the coconut server does, over a
// small part of HTTP.
//
//	/fetch            the next number of 16 characters          sequence.go, number.go
//	/explain          the parts of a number                     number.go
//	/query /apply /cancel /increase /decrease /empty            quota.go
//
// Beyond the published calls there are /fetch?count=N for a block, name=NAME for further sequences
// and quotas of one server, and id=ID, which makes the repetition of a quota call harmless.
//
// Sequences and quotas keep what must survive in records of a database: the bounds of sequences,
// the remaining amounts and the journals of quotas. records.go draws them. A number is never given
// out twice, and no acknowledged quota call is lost, whatever happens to the clock and the machine.
package sequence

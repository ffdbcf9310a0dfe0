// Package metrics measures requests while they are served, at a cost that cannot be seen in the throughput: two looks at the
// clock for each batch of requests that arrive together, and a few additions to counters that no two busy connections share.
// Nothing is allocated and nothing is locked. Whoever wants the figures (a scrape) adds the counters up.
//
// A Recorder belongs to one connection. Its time begins when bytes have arrived and ends when the replies may leave, which is
// after the wait for the update log and before the wait for a client that is slow to read. Waiting for the rest of a request
// is not counted. Requests that were pipelined all have the time of their batch: that is what their client waits for.
//
// A nil Recorder measures nothing and does not look at the clock.
package metrics

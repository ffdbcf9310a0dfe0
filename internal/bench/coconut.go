package main

// coconut compares sequence numbers and quotas with the gets of the same server.
func (b *bench) coconut() error {
	b.table("Sequence numbers and quotas over 64 connections, requests/s", "request", "rate", "of GET /key")
	p, err := start(b.server, "-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1", "-services", "$DIR/services.kct",
		"-sequence-port", "$PORT1", "-quota-port", "$PORT2", "-quota-limit", "1000000000", ":")
	if err != nil {
		return err
	}
	defer p.stop() //nolint:errcheck // a measurement's end
	if _, err := b.wrkScript(p, p.addr(), `request = function() return wrk.format("PUT", "/key", nil, string.rep("x", 16)) end`, 1); err != nil {
		return err
	}
	gets := 0.0
	for _, row := range []struct{ name, addr, path string }{
		{"`GET /key`", p.addr(), "/key"},
		{"`/fetch`", p.further(1), "/fetch"},
		{"`/apply?amt=1`, logged before the reply", p.further(2), "/apply?amt=1"},
	} {
		rate, err := b.wrkScript(p, row.addr, `request = function() return wrk.format("GET", "`+row.path+`") end`, 64)
		if err != nil {
			return err
		}
		if gets == 0 {
			gets = rate
		}
		b.row(row.name, rate, ratio(rate/gets))
	}
	return nil
}

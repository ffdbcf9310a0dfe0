package main

// oas compares -oas, where every set is acknowledged after an fsync, with the default mode.
func (b *bench) oas() error {
	b.table("Sets over 64 connections into `.kct` with `-ulog`, requests/s", "mode", "sets", "of default")
	base := []string{"-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1"}
	var normal float64
	for _, mode := range []struct {
		name string
		args []string
	}{
		{"default", nil},
		{"`-oas`", []string{"-oas"}},
	} {
		args := append(append(append([]string(nil), base...), mode.args...), "$DIR/a.kct")
		p, err := start(b.server, args...)
		if err != nil {
			return err
		}
		defer p.stop() //nolint:errcheck // a measurement's end
		rate, err := b.wrk(p, set, 64)
		if err != nil {
			return err
		}
		if normal == 0 {
			normal = rate
		}
		b.row(mode.name, rate, ratio(rate/normal))
	}
	return nil
}

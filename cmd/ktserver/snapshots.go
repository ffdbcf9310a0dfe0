package main

import "gotycoon/tools/cli"

// defineSnapshots lists the options of background snapshots.
func (o *options) defineSnapshots() {
	f, s := o.flags, &o.Snapshots
	f.StringVar(&s.Dir, "bgs", "", "keep snapshots of all databases in this `directory`, and load them at the start; databases in memory live on in them")
	f.Var(cli.Duration(&s.Interval), "bgsi", "take one every so many seconds; 0 or less: only at the end (default 180)")
	f.StringVar(&s.Compressor, "bgsc", "", "`compressor` of new ones: none, zlib, lzo, lzma, zstd or s2 (default none)")
}

package expr

// baseSize returns the size that an empty database has in the original. Capacity limits (ktcapsiz) count it, and
// users who set them have measured with it. Known from recordings:
//
//	:       8 bytes per bucket
//	*       16 tables, each 116 bytes and 8 per bucket; a prime number of buckets
//	%       the pages in a *, with 165 bytes for the description and the first leaf
//	.kch    header, free block pool, 6 (opts=s: 4) bytes per bucket, aligned
//	.kct    the same, with two records
//	.kcf    157
//	others  0
func BaseSize(e Expr) int64 {
	const absurd = 1 << 50
	buckets := min(buckets(e), absurd)
	switch e.Kind {
	case Stash:
		return 8 * buckets
	case Cache:
		return cacheSize(buckets)
	case Grass:
		return cacheSize(buckets) + 165
	case FileHash:
		return fileSize(e, buckets)
	case FileTree:
		return fileSize(e, buckets) + 2*alignUp(1, alignment(e))
	case DirTree:
		return 157
	}
	return 0
}

const cacheTables = 16

func cacheSize(buckets int64) int64 {
	return cacheTables * (116 + 8*nextPrime(max(buckets/cacheTables, 1)))
}

// fileSize is the size of an empty file up to its records.
func fileSize(e Expr, buckets int64) int64 {
	const header, poolEntry = 64, 6
	width := int64(6)
	if e.Params.Opts&OptSmall != 0 {
		width = 4
	}
	n := int64(header)
	if pow := min(given(e.Params.FPow, 0, fileFreePow), 20); pow > 0 {
		n += poolEntry<<pow + 2*width + 2
	}
	return alignUp(n+width*buckets, alignment(e))
}

// alignUp rounds n up to a multiple of 2^pow; there is no use for a power over 15.
func alignUp(n, pow int64) int64 {
	unit := int64(1) << min(pow, 15)
	return (n + unit - 1) &^ (unit - 1)
}

// nextPrime returns the least prime number from n on. For huge tables it saves the search: the share is small.
func nextPrime(n int64) int64 {
	const huge = 1 << 24
	for n = max(n, 2); n < huge && !isPrime(n); n++ {
	}
	return n
}

func isPrime(n int64) bool {
	for d := int64(2); d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}

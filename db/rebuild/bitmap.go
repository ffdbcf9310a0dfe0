package rebuild

// bitmap is a set of pages.
type bitmap []uint64

func newBitmap(n uint64) bitmap {
	b := make(bitmap, n/64+1)
	for i := n; i < 64*uint64(len(b)); i++ {
		b[i/64] |= 1 << (i % 64) // behind the end
	}
	return b
}

// set adds a page and tells whether it is new.
func (b bitmap) set(i uint64) bool {
	was := b.has(i)
	b[i/64] |= 1 << (i % 64)
	return !was
}

func (b bitmap) has(i uint64) bool { return b[i/64]>>(i%64)&1 != 0 }

// missing returns how many pages from one on are not in the set, and the first of them.
func (b bitmap) missing(from uint64) (count, first uint64) {
	for i := from; i < 64*uint64(len(b)); i++ {
		if !b.has(i) {
			if count == 0 {
				first = i
			}
			count++
		}
	}
	return count, first
}

package paging

// maxDepth is more levels than a tree has: a damaged file may lead in circles.
const maxDepth = 32

// A descent is a way through branch pages to a leaf, from which it goes on to the leaves beside it.
type descent struct {
	file file
	way  []step
}

type step struct {
	branch branch
	i      int // the child that was taken
}

// seek goes to the leaf that has a key. With a depth, which is that of all leaves, seek does not
// touch the leaf.
func (d *descent) seek(root uint64, key []byte, depth int) (leaf uint64, ok bool) {
	d.way = d.way[:0]
	for page := root; len(d.way) < maxDepth; {
		if depth > 0 && len(d.way) == depth {
			return page, page < d.file.pages()
		}
		b, ok := d.file.branch(page)
		if !ok {
			return page, page < d.file.pages()
		}
		i := b.find(key)
		d.way = append(d.way, step{b, i})
		page = b.child(i)
	}
	return 0, false
}

// next goes to the leaf beside this one. enter is called with each branch page before it is read.
func (d *descent) next(backward bool, enter func(page uint64)) (leaf uint64, ok bool) {
	by, depth := 1, len(d.way)
	if backward {
		by = -1
	}
	for len(d.way) > 0 {
		top := &d.way[len(d.way)-1]
		if i := top.i + by; i >= 0 && i < top.branch.n {
			top.i = i
			break
		}
		d.way = d.way[:len(d.way)-1]
	}
	if len(d.way) == 0 {
		return 0, false
	}
	top := &d.way[len(d.way)-1]
	page := top.branch.child(top.i)
	for len(d.way) < depth { // all leaves are equally deep
		if page >= d.file.pages() {
			return 0, false
		}
		enter(page)
		b, ok := d.file.branch(page)
		if !ok {
			return 0, false
		}
		s := step{branch: b}
		if backward {
			s.i = b.n - 1
		}
		d.way = append(d.way, s)
		page = b.child(s.i)
	}
	return page, page < d.file.pages()
}

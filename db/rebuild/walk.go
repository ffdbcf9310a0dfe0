package rebuild

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// An element is one element of a page.
type element struct {
	page       uint64 // that it stands in
	flags      uint32
	child      uint64
	key, value []byte
	from, to   int // where its data is in the page
}

// A span is the range of keys that belong into a page: from low up to, and without, high. nil is
// open.
type span struct{ low, high []byte }

// noKeys is a range without keys.
var noKeys = span{[]byte{}, []byte{}}

func (s span) holds(key []byte) bool {
	return bytes.Compare(key, s.low) >= 0 && (s.high == nil || less(key, s.high))
}

// touches reports whether two ranges have keys in common.
func (s span) touches(o span) bool {
	return (o.high == nil || less(s.low, o.high)) && (s.high == nil || less(o.low, s.high))
}

// String shows the range in Go's notation, without the byte that all keys begin with.
func (s span) String() string {
	low, high := "the first key", "the last"
	if len(s.low) > 1 {
		low = fmt.Sprintf("%q", s.low[1:])
	}
	if s.high != nil {
		high = fmt.Sprintf("%q", s.high[min(1, len(s.high)):])
	}
	return low + " up to " + high
}

// at returns an element; ok is false when its data is not inside of the page.
func (p page) at(i int) (e element, ok bool) {
	e.page = p.id
	at := headSize + elementSize*i
	if at+elementSize > len(p.raw) {
		return e, false
	}
	b := p.raw[at : at+elementSize]
	var pos, ksize, vsize uint32
	if p.flags == flagBranch {
		pos, ksize, e.child = binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint64(b[8:])
	} else {
		e.flags, pos, ksize, vsize = binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:])
	}
	from := int64(at) + int64(pos)
	mid := from + int64(ksize)
	to := mid + int64(vsize)
	if from < int64(headSize)+int64(elementSize)*int64(p.count) || to > int64(len(p.raw)) {
		return e, false
	}
	e.from, e.to = int(from), int(to)
	e.key, e.value = p.raw[from:mid:mid], p.raw[mid:to:to]
	return e, true
}

// records visits the elements of a page that is as it should be: the data of each element behind
// that of the one before, and keys in order and in their range.
func (p page) records(in span, visit func(element) error) error {
	next := headSize + elementSize*int(p.count)
	low := in.low
	for i := range int(p.count) {
		e, ok := p.at(i)
		switch {
		case !ok || e.from != next:
			return &Damage{Page: p.id, What: fmt.Sprintf("element %d is not where it should be", i)}
		case i > 0 && bytes.Compare(e.key, low) <= 0:
			return &Damage{Page: p.id, What: fmt.Sprintf("key %d is not greater than the one before", i)}
		case !in.holds(e.key):
			return &Damage{Page: p.id, What: fmt.Sprintf("key %d does not belong into the page: %v do", i, in)}
		}
		if err := visit(e); err != nil {
			return err
		}
		low, next = e.key, e.to
	}
	return nil
}

// maxDepth is how deep a tree may be. A deeper tree leads back to a page above.
const maxDepth = 64

// keptBuffer is the largest buffer that a walker keeps for the next page: a walk through a large
// value should not hold its memory until the end, above all where many walks go on side by side.
const keptBuffer = 256 << 10

// A walker visits the pages of a tree in the order of their keys.
type walker struct {
	*pages
	only span                           // the keys that are wanted; most pages without such keys are passed over
	leaf func(p page, in span) error    // each leaf
	bad  func(d *Damage, in span) error // each page that cannot be read, with the keys missing for it
	seen func(p page) error             // each page; nil: nobody asks
	bufs [][]byte                       // one for each depth
}

// bucket visits the pages of a bucket.
func (w *walker) bucket(b bucket) error {
	if b.root != 0 {
		return w.visit(b.root, span{}, 0)
	}
	if len(b.inline) < headSize {
		return w.bad(w.damage(b.page, "an inline page is cut short"), span{})
	}
	p := page{readHead(b.inline), b.inline}
	if p.flags != flagLeaf {
		return w.bad(w.damage(b.page, "an inline page is of kind %#x", p.flags), span{})
	}
	p.id = b.page
	return w.checked(w.leaf(p, span{}), b.page, span{})
}

// checked gives what was found in a page to bad.
func (w *walker) checked(err error, id uint64, in span) error {
	if d, ok := err.(*Damage); ok { // as it was made
		_ = w.placed(d, id)
		return w.bad(d, in)
	}
	return err
}

func (w *walker) visit(id uint64, in span, depth int) error {
	if depth == maxDepth {
		return w.bad(w.damage(id, "lies %d pages deep: the tree is a circle", depth), in)
	}
	if depth == len(w.bufs) {
		w.bufs = append(w.bufs, nil)
	}
	p, buf, err := w.read(id, flagBranch|flagLeaf, w.bufs[depth])
	w.bufs[depth] = buf
	if err != nil {
		return w.checked(err, id, in)
	}
	if w.seen != nil {
		if err := w.seen(p); err != nil {
			return w.checked(err, id, in)
		}
	}
	if p.flags == flagLeaf {
		err := w.checked(w.leaf(p, in), id, in)
		if len(buf) > keptBuffer {
			w.bufs[depth] = nil
		}
		return err
	}
	return w.branch(p, in, depth)
}

// branch visits the children of a page. It visits a child even if the child's key is damaged.
func (w *walker) branch(p page, in span, depth int) error {
	if p.count == 0 {
		return w.bad(w.damage(p.id, "a branch without children"), in)
	}
	low := in.low
	children, bad := p.children(in)
	for i, c := range children {
		if i > 0 && c.key != nil {
			low = c.key
		}
		below := span{low, in.high}
		for _, later := range children[i+1:] {
			if later.key != nil {
				below.high = later.key
				break
			}
		}
		if bad != nil && c.key == nil {
			// An empty span: no keys are missing because of that alone.
			if err := w.checked(bad, p.id, span{low, low}); err != nil {
				return err
			}
			bad = nil
		}
		if !w.only.touches(below) {
			continue
		}
		if err := w.visit(c.child, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// children returns the elements of a branch and what is wrong with the first bad one. An element
// whose key cannot be used is returned without a key.
func (p page) children(in span) (list []element, bad error) {
	low, next := in.low, headSize+elementSize*int(p.count)
	for i := range min(int(p.count), (len(p.raw)-headSize)/elementSize) {
		e, ok := p.at(i)
		wrong := ""
		switch {
		case !ok || e.from != next:
			wrong = fmt.Sprintf("element %d is not where it should be", i)
		case len(e.key) == 0 || i > 0 && bytes.Compare(e.key, low) <= 0, in.high != nil && !less(e.key, in.high):
			wrong = fmt.Sprintf("key %d is not in order", i)
		default:
			low = e.key
		}
		if wrong != "" {
			e.key = nil
			if bad == nil {
				bad = &Damage{Page: p.id, What: wrong}
			}
		}
		if ok {
			next = e.to
		}
		list = append(list, e)
	}
	return list, bad
}

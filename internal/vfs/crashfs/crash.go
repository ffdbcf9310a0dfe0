package crashfs

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// sector is the largest number of aligned bytes that are written as a whole.
const sector = 512

// luck is how one power cut treats what was not synced.
type luck struct {
	rnd   *rand.Rand
	keep  float64 // chance of each part to be on disk
	block int64   // size of the parts of a write
}

func newLuck(rnd *rand.Rand) luck {
	keeps := []float64{0, 0.1, 0.5, 0.9, 1}
	return luck{rnd, keeps[rnd.IntN(len(keeps))], sector << (3 * rnd.IntN(2))}
}

func (k luck) kept() bool { return k.rnd.Float64() < k.keep }

// Crash cuts the power, if that has not happened, and makes a directory as the power cut may leave
// this one. The same source of random numbers gives the same result again.
func (fs *FS) Crash(rnd *rand.Rand, dst string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.cut = true
	return newLuck(rnd).leaveDir(fs.top, dst)
}

func (k luck) leaveDir(d *dir, dst string) error {
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return err
	}
	names := maps.Clone(d.synced)
	for _, c := range d.pending {
		if k.kept() {
			c.apply(names)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		path, node := filepath.Join(dst, name), names[name]
		var err error
		if node.dir != nil {
			err = k.leaveDir(node.dir, path)
		} else {
			err = os.WriteFile(path, k.leave(node), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leave returns what the disk holds of a file.
func (k luck) leave(node *inode) []byte {
	content := append([]byte(nil), node.synced...)
	for i := range node.unsynced {
		content = k.leaveOp(content, &node.unsynced[i])
	}
	return content
}

// leaveOp makes the parts of a change that reached the disk. The size may have grown without the
// data.
func (k luck) leaveOp(content []byte, o *op) []byte {
	if o.truncate {
		if k.kept() {
			content = o.apply(content)
		}
		return content
	}
	end := o.off + int64(len(o.data))
	if k.kept() {
		content = resize(content, max(end, int64(len(content))))
	}
	for from := o.off; from < end; {
		to := min(end, (from/k.block+1)*k.block)
		if k.kept() {
			content = patch(content, from, o.data[from-o.off:to-o.off])
		}
		from = to
	}
	return content
}

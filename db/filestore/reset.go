package filestore

import "errors"

// Reset puts an empty database in the place of the one at path, which must be one of ours and open nowhere else. The new one has
// another identity, so that no log has anything to add to it. A crash leaves the one or the other.
func Reset(path string, o Options) error {
	old, err := Open(path, o)
	if err != nil {
		return err
	}
	was := old.Meta()
	was.Outlive()
	err = create(path, Meta{Format: formatVersion, ID: NewID(), Clean: true, Persistent: o.Persistent, Summed: true, LWW: was.LWW, Newest: was.Newest})
	return errors.Join(err, old.Abandon())
}

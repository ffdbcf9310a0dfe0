package redisfile

import "strconv"

// Types of values. Those with one string are packed structures, which are passed over as a whole.
const (
	typeString       = 0
	typeModule2      = 7
	typeStream       = 15
	typeStream2      = 19
	typeStream3      = 21
	typeHashExpires  = 24
	typeHashPacked   = 25
	bytesOfFloat     = 8
	bytesOfFloat32   = 4
	bytesOfID        = 16 // of an entry of a stream
	bytesOfTime      = 8
	lastShortDouble  = 252 // a longer one is "not a number", or infinite
	moduleEnd        = 0
	moduleInt        = 1
	moduleUint       = 2
	moduleFloat      = 3
	moduleDouble     = 4
	moduleText       = 5
	numbersInStream2 = 5 // first entry, largest removed one: two numbers each; entries ever added
)

// skipValue reads a value that is no string, and returns the name of its type.
func (d *rdb) skipValue(kind byte) (name string, err error) {
	switch kind {
	case 1, 14: // list; quicklist: of packed lists
		return "list", d.skipEach(func() error { return d.skipStrings(1) })
	case 18: // quicklist2
		return "list", d.skipEach(func() error {
			if err := d.skipLengths(1); err != nil {
				return err
			}
			return d.skipStrings(1)
		})
	case 2:
		return "set", d.skipEach(func() error { return d.skipStrings(1) })
	case 3:
		return "sorted set", d.skipEach(func() error {
			if err := d.skipStrings(1); err != nil {
				return err
			}
			return d.skipShortDouble()
		})
	case 5:
		return "sorted set", d.skipEach(func() error {
			if err := d.skipStrings(1); err != nil {
				return err
			}
			return d.skip(bytesOfFloat)
		})
	case 4:
		return "hash", d.skipEach(func() error { return d.skipStrings(2) })
	case typeHashExpires:
		if err := d.skip(bytesOfTime); err != nil {
			return "", err
		}
		return "hash", d.skipEach(func() error {
			if err := d.skipLengths(1); err != nil {
				return err
			}
			return d.skipStrings(2)
		})
	case typeHashPacked:
		if err := d.skip(bytesOfTime); err != nil {
			return "", err
		}
		return "hash", d.skipStrings(1)
	case 10:
		return "list", d.skipStrings(1)
	case 11, 20:
		return "set", d.skipStrings(1)
	case 12, 17:
		return "sorted set", d.skipStrings(1)
	case 9, 13, 16:
		return "hash", d.skipStrings(1)
	case typeStream, typeStream2, typeStream3:
		return "stream", d.skipStream(kind)
	case typeModule2:
		if err := d.skipLengths(1); err != nil {
			return "", err
		}
		return "module", d.skipModule()
	}
	return "", damaged("a value of type %s", strconv.Itoa(int(kind)))
}

// skipEach reads a number, and calls one so many times.
func (d *rdb) skipEach(one func() error) error {
	n, err := d.length()
	for ; err == nil && n > 0; n-- {
		err = one()
	}
	return err
}

func (d *rdb) skip(n uint64) error {
	_, err := d.bytes(n)
	return err
}

func (d *rdb) skipStrings(n int) (err error) {
	for ; err == nil && n > 0; n-- {
		_, err = d.string()
	}
	return err
}

func (d *rdb) skipLengths(n int) (err error) {
	for ; err == nil && n > 0; n-- {
		_, err = d.length()
	}
	return err
}

// skipShortDouble reads a number as text behind its length, or one of three lengths that stand for
// a number.
func (d *rdb) skipShortDouble() error {
	n, err := d.byte()
	if err != nil || n > lastShortDouble {
		return err
	}
	return d.skip(uint64(n))
}

// skipModule reads values until their end mark.
func (d *rdb) skipModule() error {
	for {
		kind, err := d.length()
		if err != nil {
			return err
		}
		switch kind {
		case moduleEnd:
			return nil
		case moduleInt, moduleUint:
			err = d.skipLengths(1)
		case moduleFloat:
			err = d.skip(bytesOfFloat32)
		case moduleDouble:
			err = d.skip(bytesOfFloat)
		case moduleText:
			err = d.skipStrings(1)
		default:
			err = damaged("a value of a module of kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
}

// skipStream reads packed entries, the stream's numbers, and its groups of consumers.
func (d *rdb) skipStream(kind byte) error {
	if err := d.skipEach(func() error { return d.skipStrings(2) }); err != nil {
		return err
	}
	numbers := 3 // entries, and the ID of the last one, which is two numbers
	if kind >= typeStream2 {
		numbers += numbersInStream2
	}
	if err := d.skipLengths(numbers); err != nil {
		return err
	}
	return d.skipEach(func() error { return d.skipGroup(kind) })
}

// skipGroup reads a group: name, the ID of its last entry, entries that are pending, and consumers.
func (d *rdb) skipGroup(kind byte) error {
	if err := d.skipStrings(1); err != nil {
		return err
	}
	numbers := 2
	if kind >= typeStream2 {
		numbers++ // entries read
	}
	if err := d.skipLengths(numbers); err != nil {
		return err
	}
	err := d.skipEach(func() error {
		if err := d.skip(bytesOfID + bytesOfTime); err != nil {
			return err
		}
		return d.skipLengths(1)
	})
	if err != nil {
		return err
	}
	return d.skipEach(func() error {
		if err := d.skipStrings(1); err != nil {
			return err
		}
		times := uint64(bytesOfTime)
		if kind >= typeStream3 {
			times += bytesOfTime
		}
		if err := d.skip(times); err != nil {
			return err
		}
		return d.skipEach(func() error { return d.skip(bytesOfID) })
	})
}

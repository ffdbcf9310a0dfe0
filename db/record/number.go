package record

import (
	"encoding/binary"
	"gotycoon/db/dberr"
	"math"
	"math/big"
)

// Arguments of the increments that are no numbers to start from, reference section 7. For doubles the infinities
// take their places.
const (
	OrigTry = math.MinInt64 // a missing record is an error
	origSet = math.MaxInt64 // the record counts as 0
)

// addInt adds num to a number stored in 8 bytes. old is the value of the record where exists is set. write tells
// whether the sum must be stored, which can be so although err is set: a sum of -2^63 is stored and reported as an
// error, because that number is how the original's engine reports one. Sums wrap around.
func AddInt(old []byte, exists bool, num, orig int64) (sum int64, write bool, err error) {
	switch {
	case exists && len(old) != 8, !exists && orig == OrigTry:
		return 0, false, dberr.ErrLogic
	case orig == origSet:
		sum, write = num, true
	case exists:
		sum, write = decodeInt(old)+num, num != 0
	default:
		sum, write = orig+num, true
	}
	if sum == math.MinInt64 {
		err = dberr.ErrLogic
	}
	return sum, write, err
}

// encodeInt returns the stored form: two's complement, big-endian.
func EncodeInt(n int64) (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(n))
	return b
}

func decodeInt(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// addDouble adds num to a number stored in 16 bytes, see decimal. As with addInt a result can have to be stored
// although err is set: NaN is.
func AddDouble(old []byte, exists bool, num, orig float64) (sum float64, stored []byte, write bool, err error) {
	set := math.IsInf(orig, 1)
	switch {
	case exists && len(old) != 16, !exists && (math.IsNaN(orig) || math.IsInf(orig, -1)):
		return math.NaN(), nil, false, dberr.ErrLogic
	case !exists && !set:
		num += orig
		fallthrough
	case !exists:
		d := decimalOf(num)
		return result(num, d.encode(), true)
	}
	d := decodeDecimal(old)
	if !d.finite() || num == 0 && !set {
		return result(d.float(), nil, false)
	}
	if set {
		d = decimal{}
	}
	d = d.add(num)
	return result(d.float(), d.encode(), true)
}

func result(sum float64, stored []byte, write bool) (float64, []byte, bool, error) {
	if math.IsNaN(sum) {
		return sum, stored, write, dberr.ErrLogic
	}
	return sum, stored, write, nil
}

// decimal is a number as increment_double stores it: integer and fraction*10^15, both with the number's sign.
// A negative fraction is not carried over into the integer; the pair is what it is, and clients have read it so.
//
//	offset  size  field
//	     0     8  integer, big-endian; +inf: 2^63-1, -inf and NaN: -2^63
//	     8     8  fraction * 10^15, big-endian; NaN: -2^63, else 0 for an infinity
type decimal struct{ integer, fraction int64 }

const fractionUnit = 1e15

func infinite(sign int) decimal {
	if sign < 0 {
		return decimal{integer: math.MinInt64}
	}
	return decimal{integer: math.MaxInt64}
}

// decimalOf cuts what is beyond 10^-15. Numbers that do not fit, where the original's result is undefined, become
// infinite.
func decimalOf(f float64) decimal {
	whole, fraction := math.Modf(f)
	switch {
	case math.IsNaN(f):
		return decimal{math.MinInt64, math.MinInt64}
	case whole >= math.MaxInt64: // 2^63 as a float
		return infinite(1)
	case whole <= math.MinInt64:
		return infinite(-1)
	}
	return decimal{int64(whole), scale(fraction)}
}

// scale multiplies a fraction with its unit. The original computes with 64-bit mantissas; with the 53 bits of a
// float64 0.3 would become 300000000000000 and not 299999999999999.
func scale(fraction float64) int64 {
	product := new(big.Float).SetPrec(64)
	product.Mul(big.NewFloat(fraction), big.NewFloat(fractionUnit))
	n, _ := product.Int64()
	return n
}

func decodeDecimal(b []byte) decimal { return decimal{decodeInt(b), decodeInt(b[8:])} }

func (d decimal) encode() []byte {
	b := make([]byte, 0, 16)
	b = binary.BigEndian.AppendUint64(b, uint64(d.integer))
	return binary.BigEndian.AppendUint64(b, uint64(d.fraction))
}

func (d decimal) finite() bool { return d.integer != math.MaxInt64 && d.integer != math.MinInt64 }

func (d decimal) float() float64 {
	switch {
	case d == decimal{math.MinInt64, math.MinInt64}:
		return math.NaN()
	case !d.finite():
		return math.Inf(int(d.integer >> 63))
	}
	return float64(d.integer) + float64(d.fraction)/fractionUnit
}

// add adds f to a finite number. Only a fraction of 10^15 or more is carried over, and one that would leave 64 bits.
func (d decimal) add(f float64) decimal {
	e := decimalOf(f)
	if !e.finite() {
		return e
	}
	if _, ok := addFits(d.fraction, e.fraction); !ok {
		d = decimal{d.fraction / fractionUnit, d.fraction % fractionUnit}.sum(d.integer, 0)
	}
	return d.sum(e.integer, e.fraction)
}

// sum adds two parts; the fractions fit together.
func (d decimal) sum(integer, fraction int64) decimal {
	fraction += d.fraction
	if fraction >= fractionUnit {
		d.integer++
		fraction -= fractionUnit
	}
	sum, ok := addFits(d.integer, integer)
	if !ok || !d.finite() {
		return infinite(int(d.integer >> 63))
	}
	return decimal{sum, fraction}
}

// addFits adds; ok is false where the sum does not fit.
func addFits(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (a^sum)&(b^sum) >= 0
}

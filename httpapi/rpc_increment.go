package httpapi

import (
	"math"
	"strconv"

	"gotycoon/internal/lenient"
)

// numberParams returns the parameters key and num.
func (s *Session) numberParams() (key, num []byte, err error) {
	key, ok := s.in.Get("key")
	num, alsoOK := s.in.Get("num")
	if !ok || !alsoOK {
		return nil, nil, errInvalidParameters
	}
	return key, num, nil
}

func rpcIncrement(s *Session) error {
	key, num, err := s.numberParams()
	if err != nil {
		return err
	}
	sum, err := s.call.db.Increment(&s.c.Owed, key, lenient.Int(num), s.origInt(), s.xt())
	if err != nil {
		return err
	}
	s.outInt("num", sum)
	return nil
}

// origInt returns what a missing record counts as, in the form that db.Increment takes.
func (s *Session) origInt() int64 {
	text, _ := s.in.Get("orig")
	switch string(text) {
	case "try":
		return math.MinInt64
	case "set":
		return math.MaxInt64
	}
	return lenient.Int(text)
}

func rpcIncrementDouble(s *Session) error {
	key, num, err := s.numberParams()
	if err != nil {
		return err
	}
	sum, err := s.call.db.IncrementDouble(&s.c.Owed, key, lenient.Float(num), s.origFloat(), s.xt())
	if err != nil {
		return err
	}
	s.outBytes("num", s.internFloat(sum))
	return nil
}

// origFloat returns what a missing record counts as, in the form that db.IncrementDouble takes. NaN acts like "try".
func (s *Session) origFloat() float64 {
	text, _ := s.in.Get("orig")
	switch string(text) {
	case "try":
		return math.Inf(-1)
	case "set":
		return math.Inf(1)
	}
	orig := lenient.Float(text)
	if math.IsNaN(orig) {
		return math.Inf(-1)
	}
	return orig
}

// internFloat writes a number with six decimals.
func (s *Session) internFloat(f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return s.intern("inf")
	case math.IsInf(f, -1):
		return s.intern("-inf")
	}
	from := len(s.arena)
	s.arena = strconv.AppendFloat(s.arena, f, 'f', 6, 64)
	return s.arena[from:len(s.arena):len(s.arena)]
}

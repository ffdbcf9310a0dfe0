package frame

import "encoding/binary"

// Script begins a play_script request.
//
//	magic 1 | flags 4 | nsiz 4 | rnum 4 | name
type Script struct {
	Flags uint32
	RNum  uint32 // number of pairs that follow
	Name  []byte // of the procedure
}

const scriptHead = 13

// AppendScript appends s to dst.
func AppendScript(dst []byte, s Script) []byte {
	dst = append(dst, byte(PlayScript))
	dst = binary.BigEndian.AppendUint32(dst, s.Flags)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s.Name)))
	dst = binary.BigEndian.AppendUint32(dst, s.RNum)
	return append(dst, s.Name...)
}

// DecodeScript reads a Script from p.
func DecodeScript(p []byte) (s Script, n int, err error) {
	if len(p) > 0 && Magic(p[0]) != PlayScript {
		return Script{}, 0, ErrMagic
	}
	if len(p) < scriptHead {
		return Script{}, scriptHead, ErrShort
	}
	if _, n, err = sections(p, scriptHead, binary.BigEndian.Uint32(p[5:]), 0, MaxSize); err != nil {
		return Script{}, n, err
	}
	return Script{
		Flags: binary.BigEndian.Uint32(p[1:]),
		RNum:  binary.BigEndian.Uint32(p[9:]),
		Name:  p[scriptHead:n:n],
	}, n, nil
}

// Pair is an input of a procedure in the request, or an output in the reply.
//
//	ksiz 4 | vsiz 4 | key | value
type Pair struct {
	Key, Value []byte
}

const pairHead = 8

// AppendPair appends p to dst.
func AppendPair(dst []byte, p Pair) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Key)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Value)))
	dst = append(dst, p.Key...)
	return append(dst, p.Value...)
}

// DecodePair reads a Pair from p.
func DecodePair(p []byte) (pair Pair, n int, err error) {
	if len(p) < pairHead {
		return Pair{}, pairHead, ErrShort
	}
	keyEnd, n, err := sections(p, pairHead, binary.BigEndian.Uint32(p), binary.BigEndian.Uint32(p[4:]), MaxSize)
	if err != nil {
		return Pair{}, n, err
	}
	return Pair{Key: p[pairHead:keyEnd:keyEnd], Value: p[keyEnd:n:n]}, n, nil
}

package memcache

import "encoding/binary"

// A message of the binary protocol, all numbers big-endian:
//
//	offset size
//	     0    1  magic: 0x80 request, 0x81 reply
//	     1    1  opcode
//	     2    2  length of the key
//	     4    1  length of the extras
//	     5    1  data type, 0
//	     6    2  request: reserved; reply: status
//	     8    4  length of the body: extras, key, value
//	    12    4  opaque, copied into the reply
//	    16    8  version (cas)
//	    24       the body
const (
	requestMagic = 0x80
	replyMagic   = 0x81
	headerSize   = 24
)

// opcode is the command of a binary request.
type opcode byte

const (
	opGet       opcode = 0x00
	opSet       opcode = 0x01
	opAdd       opcode = 0x02
	opReplace   opcode = 0x03
	opDelete    opcode = 0x04
	opIncrement opcode = 0x05
	opDecrement opcode = 0x06
	opQuit      opcode = 0x07
	opFlush     opcode = 0x08
	opGetQ      opcode = 0x09
	opNoop      opcode = 0x0a
	opVersion   opcode = 0x0b
	opGetK      opcode = 0x0c
	opGetKQ     opcode = 0x0d
	opAppend    opcode = 0x0e
	opPrepend   opcode = 0x0f
	opStat      opcode = 0x10
	opSetQ      opcode = 0x11
	opAddQ      opcode = 0x12
	opReplaceQ  opcode = 0x13
	opDeleteQ   opcode = 0x14
	opIncrQ     opcode = 0x15
	opDecrQ     opcode = 0x16
	opQuitQ     opcode = 0x17
	opFlushQ    opcode = 0x18
	opAppendQ   opcode = 0x19
	opPrependQ  opcode = 0x1a
	opVerbosity opcode = 0x1b
	opTouch     opcode = 0x1c
	opGAT       opcode = 0x1d
	opGATQ      opcode = 0x1e
	opGATK      opcode = 0x23
	opGATKQ     opcode = 0x24
)

// The opcodes of SASL. Without an access file they are unknown.
const (
	opMechanisms opcode = 0x20
	opAuth       opcode = 0x21
	opStep       opcode = 0x22
)

// operation describes what an opcode does.
type operation struct {
	name   string
	base   opcode // the opcode without "quiet"
	quiet  bool   // no reply to a success; of a get, no reply if there is no item
	keyed  bool   // the reply repeats the key
	writes bool   // refused with opts=r
	extras [2]int // least and greatest length of the extras
	key    bool   // must have a key
	value  bool   // may have a value
}

// operation returns the description of an opcode; ok is false for unknown opcodes and those of
// SASL.
func (o opcode) operation() (row operation, ok bool) {
	switch o {
	case opGet, opGetQ, opGetK, opGetKQ:
		row = operation{name: "get", base: opGet, key: true, keyed: o == opGetK || o == opGetKQ}
		row.quiet = o == opGetQ || o == opGetKQ
	case opSet, opSetQ, opAdd, opAddQ, opReplace, opReplaceQ:
		row = operation{name: "set", base: o, writes: true, extras: [2]int{8, 8}, key: true, value: true}
		if o >= opSetQ {
			row.base, row.quiet = opSet+(o-opSetQ), true
		}
	case opAppend, opAppendQ, opPrepend, opPrependQ:
		row = operation{name: "append", base: o, writes: true, key: true, value: true}
		if o >= opAppendQ {
			row.base, row.quiet = opAppend+(o-opAppendQ), true
		}
	case opDelete, opDeleteQ:
		row = operation{name: "delete", base: opDelete, quiet: o == opDeleteQ, writes: true, key: true}
	case opIncrement, opDecrement, opIncrQ, opDecrQ:
		row = operation{name: "incr", base: o, writes: true, extras: [2]int{20, 20}, key: true}
		if o >= opIncrQ {
			row.base, row.quiet = opIncrement+(o-opIncrQ), true
		}
	case opTouch:
		row = operation{name: "touch", base: o, writes: true, extras: [2]int{4, 4}, key: true}
	case opGAT, opGATQ, opGATK, opGATKQ:
		row = operation{name: "gat", base: opGAT, writes: true, extras: [2]int{4, 4}, key: true, keyed: o >= opGATK}
		row.quiet = o == opGATQ || o == opGATKQ
	default:
		return o.service()
	}
	return row, true
}

// service is operation for opcodes that are not about an item.
func (o opcode) service() (row operation, ok bool) {
	switch o {
	case opQuit, opQuitQ:
		row = operation{name: "quit", base: opQuit, quiet: o == opQuitQ}
	case opFlush, opFlushQ:
		row = operation{name: "flush", base: opFlush, quiet: o == opFlushQ, writes: true, extras: [2]int{0, 4}}
	case opNoop:
		row = operation{name: "noop", base: o}
	case opVersion:
		row = operation{name: "version", base: o}
	case opStat:
		row = operation{name: "stat", base: o}
	case opVerbosity:
		row = operation{name: "verbosity", base: o, extras: [2]int{4, 4}}
	default:
		return row, false
	}
	return row, true
}

// status is the result of a request.
type status uint16

const (
	statusOK        status = 0x00
	statusNotFound  status = 0x01
	statusExists    status = 0x02
	statusTooLarge  status = 0x03
	statusInvalid   status = 0x04
	statusNotStored status = 0x05
	statusNotNumber status = 0x06
	statusDenied    status = 0x24
	statusAuth      status = 0x20
	statusUnknown   status = 0x81
	statusNoMemory  status = 0x82
	statusInternal  status = 0x84
	statusTemporary status = 0x86
	statusBusy      status = 0x85
)

// text is the value of a reply that reports an error.
func (s status) text() string {
	switch s {
	case statusNotFound:
		return "Not found"
	case statusExists:
		return "Data exists for key."
	case statusTooLarge:
		return "Too large."
	case statusInvalid:
		return "Invalid arguments"
	case statusNotStored:
		return "Not stored."
	case statusNotNumber:
		return "Non-numeric server-side value for incr or decr"
	case statusNoMemory:
		return "Out of memory"
	case statusDenied:
		return "The server is read-only"
	case statusAuth:
		return "Auth failure."
	case statusUnknown:
		return "Unknown command"
	case statusTemporary:
		return "Temporary failure: not enough followers are there"
	}
	return "Internal error"
}

// request is a received message. Its slices are valid until the next read.
type request struct {
	op                 opcode
	opaque             [4]byte
	unique             uint64
	extras, key, value []byte
	room               []byte // of a large value, as in change
	message            []byte // the request as it came
}

// reply is what is sent for a request.
type reply struct {
	status             status
	unique             uint64
	extras, key, value []byte
}

// parseRequest splits a message. ok is false if its lengths contradict each other.
func parseRequest(message []byte) (r request, ok bool) {
	r = request{op: opcode(message[1]), opaque: [4]byte(message[12:16]), unique: binary.BigEndian.Uint64(message[16:])}
	keyEnd := int(message[4]) + int(binary.BigEndian.Uint16(message[2:]))
	body := message[headerSize:]
	if keyEnd > len(body) {
		return r, false
	}
	r.extras, r.key, r.value = body[:message[4]], body[message[4]:keyEnd], body[keyEnd:]
	return r, true
}

// fits reports whether a request has the parts that its operation needs.
func (row *operation) fits(r *request) bool {
	return len(r.extras) >= row.extras[0] && len(r.extras) <= row.extras[1] &&
		(len(r.key) > 0 || !row.key) && (len(r.value) == 0 || row.value)
}

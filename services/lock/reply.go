package lock

import "strconv"

// The first words of replies. The first block is the original's.
const (
	wordGranted     = "GRANTED"
	wordTimeout     = "TIMEOUT"
	wordReleased    = "RELEASED"
	wordExpired     = "EXPIRED"
	wordNotReleased = "NOT_RELEASED"
	wordStatus      = "STATUS"

	wordRenewed        = "RENEWED"
	wordNotRenewed     = "NOT_RENEWED"
	wordCancelled      = "CANCELLED"
	wordNotCancelled   = "NOT_CANCELLED"
	wordNoToken        = "NO_TOKEN"
	wordTooManyKeys    = "TOO_MANY_KEYS"
	wordTooManyWaiters = "TOO_MANY_WAITERS"
	wordHolder         = "HOLDER"
	wordWaiter         = "WAITER"
	wordEnd            = "END"
)

// Replies to lines that cannot be understood. The original does not answer in the last two cases.
// Replies have at most four words, because a known client fails at a reply whose fifth word is no
// number.
const (
	invalidCommand    = "INVALID_COMMAND"
	invalidMax        = "INVALID_PARAMETER: Max concurrent should be greater or equal than 1"
	invalidTimeout    = "INVALID_PARAMETER: Timeout should be greater or equal than -1"
	invalidExpires    = "INVALID_PARAMETER: Expire timeout should be greater or equal than 0"
	invalidKeyMissing = "INVALID_PARAMETER: Key is missing"
	invalidNumber     = "INVALID_PARAMETER: Not a number"
)

// tooManyLists is the reply to a list for which there is no memory, because connections hold as
// much as they may.
const tooManyLists = "TOO_MANY_LISTS"

// notPrimary is the reply of a server that is not the primary and has not reached the primary.
const notPrimary = "NOT_PRIMARY: no primary reached"

// reply is a line about a key: WORD HOLDERS WAITERS KEY [SECONDS [TOKEN]].
type reply struct {
	word             string
	holders, waiters int
	timed            bool // the reply has seconds
	seconds          int32
	token            uint64 // 0: none
}

func appendReply(dst []byte, name string, r reply) []byte {
	dst = strconv.AppendInt(append(append(dst, r.word...), ' '), int64(r.holders), 10)
	dst = strconv.AppendInt(append(dst, ' '), int64(r.waiters), 10)
	dst = append(append(dst, ' '), name...)
	if r.timed {
		dst = strconv.AppendInt(append(dst, ' '), int64(r.seconds), 10)
	}
	if r.token != 0 {
		dst = strconv.AppendUint(append(dst, ' '), r.token, 10)
	}
	return append(dst, '\n')
}

package election

import (
	"encoding/binary"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// An envelope is a message between members:
//
//	0          1              9             17
//	┌──────────┬──────────────┬─────────────┬────┬──────┬───────────┬─────────────────────┐
//	│ kind     │ cluster, u64 │ list, u64   │ to │ from │ from addr │ a message of raftpb │
//	└──────────┴──────────────┴─────────────┴────┴──────┴───────────┴─────────────────────┘
//
// Names and address are texts with their length, u16, in front; all numbers are little-endian.
// Cluster is the hash of the cluster's name, list the fingerprint of the members that the cluster
// began with. The names keep messages away from a member that was given the address of another.
//
// The kind is 1, or 2 for the notice of a leader with a lease to a server that is no member any
// more. Of the message in it only the addressee counts.
type envelope struct {
	removed        bool // it is a notice
	cluster, list  uint64
	to, from, addr string
	message        *pb.Message
}

const (
	envelopeMessage = 1
	envelopeRemoved = 2
)

var errEnvelope = errors.New("not a message of an election")

func (e *envelope) encode() ([]byte, error) {
	b := []byte{envelopeMessage}
	if e.removed {
		b[0] = envelopeRemoved
	}
	b = binary.LittleEndian.AppendUint64(b, e.cluster)
	b = binary.LittleEndian.AppendUint64(b, e.list)
	for _, s := range []string{e.to, e.from, e.addr} {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return proto.MarshalOptions{}.MarshalAppend(b, e.message)
}

func decodeEnvelope(b []byte) (*envelope, error) {
	if len(b) < 17 || b[0] != envelopeMessage && b[0] != envelopeRemoved {
		return nil, errEnvelope
	}
	e := &envelope{
		removed: b[0] == envelopeRemoved,
		cluster: binary.LittleEndian.Uint64(b[1:]), list: binary.LittleEndian.Uint64(b[9:]),
		message: &pb.Message{},
	}
	b = b[17:]
	for _, s := range []*string{&e.to, &e.from, &e.addr} {
		if len(b) < 2 {
			return nil, errEnvelope
		}
		n := 2 + int(binary.LittleEndian.Uint16(b))
		if len(b) < n {
			return nil, errEnvelope
		}
		*s, b = string(b[2:n]), b[n:]
	}
	if err := proto.Unmarshal(b, e.message); err != nil {
		return nil, errEnvelope
	}
	return e, nil
}

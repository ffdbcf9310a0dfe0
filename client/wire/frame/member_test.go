package frame_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
)

func TestMemberKinds(t *testing.T) {
	require.Equal(t, "data", frame.MemberData.String())
	require.Equal(t, "cluster", frame.MemberCluster.String())
	require.Equal(t, "unknown (0)", frame.MemberKind(0).String())
	require.Equal(t, "unknown (9)", (frame.MemberReplica + 1).String())
}

func TestAClientThatIsTooLargeIsNotSent(t *testing.T) {
	for _, c := range []frame.MemberClient{
		{Address: strings.Repeat("1", 256)},
		{Subjects: []string{strings.Repeat("x", frame.MaxMemberClient-3)}},
		{Subjects: []string{strings.Repeat("x", 1<<17)}},
	} {
		_, err := frame.AppendMemberClient(nil, c)
		require.ErrorIs(t, err, frame.ErrTooLarge)
	}
	largest := frame.MemberClient{Subjects: []string{strings.Repeat("x", frame.MaxMemberClient-4)}}
	text, err := frame.AppendMemberClient(nil, largest)
	require.NoError(t, err)
	require.Len(t, text, frame.MaxMemberClient)
	p, n, err := frame.DecodeMemberProof(frame.AppendMemberProof(nil, frame.MemberProof{Client: text}))
	require.NoError(t, err)
	require.Equal(t, 34+len(text), n)
	back, err := frame.DecodeMemberClient(p.Client)
	require.NoError(t, err)
	require.Equal(t, largest, back)
}

func FuzzMember(f *testing.F) {
	client, err := frame.AppendMemberClient(nil, frame.MemberClient{Address: "192.0.2.1:5", Secure: true, Subjects: []string{"anna", ""}})
	require.NoError(f, err)
	f.Add(client)
	f.Add(frame.AppendMemberOpening(nil, frame.MemberOpening{Version: 1, Kind: frame.MemberLock, Name: "a:1978"}))
	f.Add(frame.AppendMemberChallenge(nil, frame.MemberChallenge{Version: 1, Method: frame.MemberBySecret}))
	f.Add(frame.AppendMemberProof(nil, frame.MemberProof{Client: client}))
	f.Add(frame.AppendMemberWelcome(nil, frame.MemberWelcome{Status: frame.MemberStandby, Reason: "because"}))
	f.Fuzz(func(t *testing.T, p []byte) {
		again(t, p, frame.DecodeMemberOpening, frame.AppendMemberOpening)
		again(t, p, frame.DecodeMemberChallenge, frame.AppendMemberChallenge)
		again(t, p, frame.DecodeMemberProof, frame.AppendMemberProof)
		again(t, p, frame.DecodeMemberWelcome, frame.AppendMemberWelcome)
		if c, err := frame.DecodeMemberClient(p); err == nil && len(p) <= frame.MaxMemberClient {
			text, err := frame.AppendMemberClient(nil, c)
			require.NoError(t, err)
			back, err := frame.DecodeMemberClient(text)
			require.NoError(t, err)
			require.Equal(t, c, back)
		}
	})
}

// again encodes what was decoded from p, and compares.
func again[T any](t *testing.T, p []byte, decode func([]byte) (T, int, error), encode func([]byte, T) []byte) {
	v, n, err := decode(p)
	switch {
	case err == nil:
		require.True(t, bytes.Equal(p[:n], encode(nil, v)))
	case errors.Is(err, frame.ErrShort):
		require.Greater(t, n, len(p))
	}
}

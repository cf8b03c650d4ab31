package proto_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

func TestRequestRoundTrip(t *testing.T) {
	r := proto.Request{Verb: "run", N: 7, Spec: proto.Spec{
		Kind: "handshake", Version: 0x0304, Group: 0x11ec, Cert: "rsa-2048", Mutual: true, Transport: "tcp", Size: 1 << 20, Op: "seal",
	}}
	got, err := proto.ParseRequest(r.String() + "\n")
	require.NoError(t, err)
	require.Equal(t, r, got)
}

func TestBadRequests(t *testing.T) {
	for _, line := range []string{
		"", "walk n=1", "run", "run n=x", "run n=1 version=99999", "run n=1 mutual=yes", "run n=1 n=2", "run n=1 colour=red", "run n=1 loose",
	} {
		_, err := proto.ParseRequest(line)
		require.Error(t, err, line)
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	a := &proto.Answer{Result: proto.NewResult(), Hello: []byte{0x16, 3, 1}}
	a.Result.Ops, a.Result.Suite = 5, 0x1301
	got, err := proto.ParseAnswer(proto.Line(a, nil))
	require.NoError(t, err)
	require.Equal(t, a, got)
}

// What a side in another language leaves out is unknown, not 0.
func TestLeftOutIsUnknown(t *testing.T) {
	a, err := proto.ParseAnswer("ok ops=3 wall_ns=10\n")
	require.NoError(t, err)
	require.EqualValues(t, 3, a.Result.Ops)
	require.EqualValues(t, -1, a.Result.Crossings)
	require.EqualValues(t, -1, a.Result.Allocs)
}

func TestErrors(t *testing.T) {
	_, err := proto.ParseAnswer(proto.Line(nil, proto.Unsupported("no %s here", "X25519")))
	u, ok := errors.AsType[*proto.UnsupportedError](err)
	require.True(t, ok)
	require.Equal(t, "no X25519 here", u.Reason)

	_, err = proto.ParseAnswer(proto.Line(nil, errors.New("two\nlines")))
	require.EqualError(t, err, "two lines")

	for _, line := range []string{"", "fine", "ok ops=x", "ok hello=xyz", "ok what=1"} {
		_, err = proto.ParseAnswer(line)
		require.Error(t, err, line)
	}
}

func TestReady(t *testing.T) {
	facts, err := proto.ParseReady("ready library=AWS-LC_FIPS_3.6.0 go=go1.26\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"library": "AWS-LC_FIPS_3.6.0", "go": "go1.26"}, facts)
	_, err = proto.ParseReady("panic: no")
	require.Error(t, err)
}

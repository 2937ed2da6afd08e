package cluster

import (
	"context"
	"io"
	"log"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPreferredPortGivesWayAndWantedPortDoesNot(t *testing.T) {
	taken, err := listenTCP(0)
	require.NoError(t, err)
	defer taken.Close()

	other, err := listenLoopback(0, portOf(taken))
	require.NoError(t, err)
	defer other.Close()
	assert.NotEqual(t, portOf(taken), portOf(other))

	_, err = listenLoopback(portOf(taken), 0)
	assert.ErrorContains(t, err, "in use")
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := freePorts(3)
	require.NoError(t, err)
	assert.Len(t, map[int]bool{ports[0]: true, ports[1]: true, ports[2]: true}, 3)
}

func TestRelayPassesBothDirectionsAndTheirEnds(t *testing.T) {
	server, err := listenTCP(0)
	require.NoError(t, err)
	defer server.Close()
	go func() { // answers only when the request has ended
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte("got "), request...))
	}()
	entrance, err := listenTCP(0)
	require.NoError(t, err)
	defer entrance.Close()
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Addr().String())
	}
	go relay{"test", entrance, dial, log.New(io.Discard, "", 0)}.serve(t.Context())

	client, err := net.DialTCP("tcp", nil, entrance.Addr().(*net.TCPAddr))
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	_, err = client.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, client.CloseWrite())
	answer, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.Equal(t, "got hello", string(answer))
}

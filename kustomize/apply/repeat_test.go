package apply

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// busy is a server that runs out of time for its first requests.
type busy struct {
	times  int
	bodies []string
}

func (b *busy) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	b.bodies = append(b.bodies, string(body))
	code := http.StatusOK
	if len(b.bodies) <= b.times {
		code = http.StatusGatewayTimeout
	}
	return &http.Response{StatusCode: code, Body: http.NoBody}, nil
}

func TestRequestsThatABusyServerGivesUpAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		method      string
		times, sent int
		code        int
	}{
		"answered at once":         {http.MethodPatch, 0, 1, http.StatusOK},
		"given up once":            {http.MethodPatch, 1, 2, http.StatusOK},
		"given up twice":           {http.MethodDelete, 2, 3, http.StatusOK},
		"given up again and again": {http.MethodPut, 9, 3, http.StatusGatewayTimeout},
		"it may have been made":    {http.MethodPost, 1, 1, http.StatusGatewayTimeout},
		"a read of a busy server":  {http.MethodGet, 2, 3, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			server := &busy{times: c.times}
			request, err := http.NewRequestWithContext(t.Context(), c.method, "https://cluster.example", strings.NewReader("all of it"))
			require.NoError(t, err)

			response, err := repeating{next: server, clock: clock.RealClock{}}.RoundTrip(request)

			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, c.code, response.StatusCode)
			assert.Len(t, server.bodies, c.sent)
			for _, body := range server.bodies {
				assert.Equal(t, "all of it", body)
			}
		})
	}
}

func TestNobodyWaitsForARepetitionAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, "https://cluster.example", strings.NewReader("all of it"))
	require.NoError(t, err)
	cancel(errors.New("interrupted"))

	response, err := repeating{next: &busy{times: 1}, pause: time.Hour, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}.RoundTrip(request)

	require.ErrorIs(t, err, context.Canceled)
	if response != nil {
		assert.NoError(t, response.Body.Close())
	}
}

package apply

import (
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Repeating returns the configuration of a client that sends a request again, twice at most, if the API server took it and ran out
// of time: writes of large CRDs take a busy server longer than its own limit. client-go repeats only the answers that ask for it.
// Requests that create an object are sent once, because the server may have done so all the same.
func Repeating(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return repeating{
			next:  next,
			pause: 2 * time.Second,
			clock: clock.RealClock{},
		}
	})
	return config
}

type repeating struct {
	next  http.RoundTripper
	pause time.Duration
	clock clock.Clock
}

// RoundTrip implements http.RoundTripper.
func (r repeating) RoundTrip(request *http.Request) (*http.Response, error) {
	const most = 2
	for repeated := 0; ; repeated++ {
		response, err := r.next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusGatewayTimeout || request.Method == http.MethodPost || repeated == most {
			return response, err
		}
		again := request.Clone(request.Context())
		if request.Body != nil && request.Body != http.NoBody {
			if request.GetBody == nil {
				return response, nil
			}
			if again.Body, err = request.GetBody(); err != nil {
				return response, nil //nolint:nilerr // it was answered
			}
		}
		_, _ = io.Copy(io.Discard, response.Body) // so that the connection is used again
		_ = response.Body.Close()
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-r.clock.After(r.pause):
		}
		request = again
	}
}

package fastclient

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// WriteOnce lets clients of the configuration report at once that the server puts a write off, as with 429 Too Many
// Requests. By themselves they would send it up to ten times more, as soon as the server's Retry-After allows:
// whoever plans writes decides when the next one is due. A delay that the status names is left in it.
func WriteOnce(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return writeOnce{next} })
}

type writeOnce struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w writeOnce) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet {
		response.Header.Del("Retry-After")
	}
	return response, err
}

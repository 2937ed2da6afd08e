package fastclient

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// WriteOnce makes clients of the configuration return at once when the server asks to retry a write later, as with 429
// Too Many Requests. By default client-go would send it up to ten more times, each as soon as Retry-After allows; here
// the plan decides when a write is due again. The delay in the returned status is kept.
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

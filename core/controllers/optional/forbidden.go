package optional

import (
	"bytes"
	"io"
	"net/http"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/transport"
)

// forbidden counts the requests and checks that fail because of a missing right, for all parts of the process.
var forbidden = prometheus.NewCounterVec(prometheus.CounterOpts{ //nolint:gochecknoglobals // it belongs to the process, whose clients and checks are made in many places
	Name: "flotilla_forbidden_requests_total",
	Help: "Requests that the API server rejected because of a missing permission, and checks of permissions that it denied.",
}, []string{"verb", "group", "resource"})

// Forbidden returns the metric of the permissions that the process lacks.
func Forbidden() prometheus.Collector { return forbidden }

// answerSize is how much of an answer is read for the permission that is lacking.
const answerSize = 4 << 10

// denial is how an API server names a permission. Quotes are escaped in JSON and not in protobuf. Errors of quotas,
// policies and namespaces that end have the same code and other words.
var denial = regexp.MustCompile(`cannot (\w+) resource \\?"([^"\\]+)\\?" in API group \\?"([^"\\]*)\\?"`)

// CountForbidden makes clients count the requests that the API server forbids them for want of a permission.
func CountForbidden() transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper { return counted{next} }
}

type counted struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusForbidden {
		return response, err
	}
	begin, err := io.ReadAll(io.LimitReader(response.Body, answerSize))
	response.Body = answer{io.MultiReader(bytes.NewReader(begin), failing{err}, response.Body), response.Body}
	if found := denial.FindSubmatch(begin); found != nil {
		forbidden.WithLabelValues(string(found[1]), string(found[3]), string(found[2])).Inc()
	}
	return response, nil
}

// answer is a body of which a part was read already.
type answer struct {
	io.Reader
	io.Closer
}

// failing ends with the error by which reading ended before, if any.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// ErrCut is the error of a client whose connection is broken.
var ErrCut = errors.New("the connection is cut")

// Send forwards a request to the server by next, changes it, or fails it.
type Send func(r *http.Request, next http.RoundTripper) (*http.Response, error)

// Over returns the environment with send handling all requests of its managers and clients.
func Over(env testenv.Environment, send Send) testenv.Environment {
	env.Config = Wrapped(env.Config, send)
	return env
}

// Wrapped returns the configuration of clients whose requests send handles.
func Wrapped(config *rest.Config, send Send) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) { return send(r, next) })
	})
	return config
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip makes the request.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// IsWrite reports whether the request is a write of a plan or of a status.
func IsWrite(r *http.Request) bool {
	asks := strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews")
	return r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") && !strings.Contains(r.URL.Path, "/events") && !asks
}

// IsPodWatch reports whether the request watches pods.
func IsPodWatch(r *http.Request) bool {
	return r.URL.Query().Has("watch") && strings.HasSuffix(r.URL.Path, "/pods")
}

// answer returns the response with which a server sends the error.
func answer(r *http.Request, err *apierrors.StatusError) (*http.Response, error) {
	status := err.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, encodingErr := json.Marshal(status)
	header := http.Header{"Content-Type": {"application/json"}}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		header.Set("Retry-After", fmt.Sprint(seconds))
	}
	return &http.Response{
		StatusCode:    int(status.Code),
		Status:        http.StatusText(int(status.Code)),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}, encodingErr
}

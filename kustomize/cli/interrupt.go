package cli

import (
	"context"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// Interruptible returns a configuration for requests that end with the context. Discovery takes no context of its own.
func Interruptible(ctx context.Context, config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &interruptible{ctx: ctx, next: next} })
	return config
}

type interruptible struct {
	ctx  context.Context //nolint:containedctx // requests of discovery have none
	next http.RoundTripper
}

// RoundTrip sends a request, which ends when its own context or the context of the command ends.
func (i *interruptible) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	release := context.AfterFunc(i.ctx, func() { cancel(i.ctx.Err()) }) //nolint:contextcheck // the request ends with either context
	end := func() { release(); cancel(nil) }
	response, err := i.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		end()
		return response, err
	}
	response.Body = &body{ReadCloser: response.Body, end: end}
	return response, nil
}

// body is the body of a response, with which the request ends.
type body struct {
	io.ReadCloser
	end func()
}

// Close closes the body.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

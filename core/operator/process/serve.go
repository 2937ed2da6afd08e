package process

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// headerTimeout is how long a client may take to send the header of a request.
const headerTimeout = 10 * time.Second

// Serve serves on a listener until ctx ends, and then returns nil.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

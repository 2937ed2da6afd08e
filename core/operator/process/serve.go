package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// headerTimeout is how long a client may take to send the header of a request.
const headerTimeout = 10 * time.Second

// Endpoint is a TCP address that a process serves on.
type Endpoint struct {
	// Address is a host and a port, such as localhost:8080 or :8080.
	Address string
	// Secure serves HTTPS. Without it HTTP is served.
	Secure bool
	// Certificate returns the certificate of a connection, if Secure. While it is nil or returns an error, the endpoint serves a
	// self-signed certificate: no other certificate need be there first.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Serve serves until ctx ends, and then returns nil. The error is about the address or the certificate.
func (e Endpoint) Serve(ctx context.Context, handler http.Handler) error {
	listener, err := e.listen(ctx)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", e.Address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", e.Address, err)
	}
	return nil
}

func (e Endpoint) listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	if !e.Secure {
		return config.Listen(ctx, "tcp", e.Address)
	}
	fallback, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("issue a self-signed certificate: %w", err)
	}
	listener, err := config.Listen(ctx, "tcp", e.Address)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(listener, &tls.Config{
		GetCertificate: e.certificateOr(&fallback),
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
	}), nil
}

func (e Endpoint) certificateOr(fallback *tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if e.Certificate != nil {
			if certificate, err := e.Certificate(hello); err == nil {
				return certificate, nil
			}
		}
		return fallback, nil
	}
}

func selfSigned() (tls.Certificate, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}

package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// callers recognizes the API server by its client certificate.
type callers struct {
	ca       *dynamiccertificates.DynamicFileCAContent
	verifier authenticator.Request
}

// newCallers returns nil if every client may call.
func newCallers(options Options) (*callers, error) {
	if options.WebhookClientCAFile == "" {
		return nil, nil
	}
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("webhook-callers", options.WebhookClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("read the CA of webhook callers: %w", err)
	}
	user := x509.NewDynamic(ca.VerifyOptions, x509.CommonNameUserConversion)
	names := headerrequest.StaticStringSlice(options.WebhookClientNames)
	return &callers{ca: ca, verifier: x509.NewDynamicCAVerifier(ca.VerifyOptions, user, names)}, nil
}

// start watches the CA file until ctx ends.
func (c *callers) start(ctx context.Context) {
	if c != nil {
		c.ca.Run(ctx, 1)
	}
}

// configure makes the server ask for client certificates. Connections without one are still accepted: probes and
// conversions have none.
func (c *callers) configure(config *tls.Config) {
	if c != nil {
		config.ClientAuth = tls.RequestClientCert
	}
}

// restrict answers only clients with a valid certificate.
func (c *callers) restrict(next http.Handler) http.Handler {
	if c == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, known, err := c.verifier.AuthenticateRequest(r); err != nil || !known {
			http.Error(w, "a client certificate of the API server is required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

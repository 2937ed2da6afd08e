package manager

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/flotilla-project/flotilla/core/internal/operator/certs"
	"github.com/flotilla-project/flotilla/core/operator/features"
)

const (
	healthPath = "/healthz"
	// selfCheckTimeout is shorter than the timeout of any probe that waits for it.
	selfCheckTimeout = 900 * time.Millisecond
	selfCheckPause   = 200 * time.Millisecond
)

// webhooks is the webhook server of an operator with its certificates.
type webhooks struct {
	server       webhook.Server
	certificates *certs.Controller
	callers      *callers
	leaving      *leaving
	address      string // of this server, as this process reaches it
	name         string // of this server, as the API server knows it
}

// newWebhooks returns nil when the operator has no webhooks.
func newWebhooks(endpoints Webhooks, operator Operator, config *rest.Config, env *Environment) (*webhooks, error) {
	if endpoints.empty() {
		return nil, nil
	}
	options := certs.Options{
		Config:   config,
		Settings: env.Options.Certificates,
		External: env.Options.FeatureGates.Enabled(features.EnableExternalCerts),
		Clock:    env.Clock,
		Random:   rand.Reader,
		Log:      env.Log.WithName("certificates"),
	}
	if len(endpoints.Mutating) > 0 {
		options.Mutating = []string{cmp.Or(operator.MutatingConfiguration, operator.Feature+"-mutating")}
	}
	if len(endpoints.Validating) > 0 {
		options.Validating = []string{operator.Feature + "-validating"}
	}
	if endpoints.Converting != nil {
		options.CRDs = operator.CRDs
	}
	certificates, err := certs.New(options)
	if err != nil {
		return nil, err
	}

	callers, err := newCallers(env.Options)
	if err != nil {
		return nil, err
	}

	server := webhook.NewServer(webhook.Options{
		Port: env.Options.Certificates.Port,
		TLSOpts: []func(*tls.Config){
			func(c *tls.Config) { c.GetCertificate = certificates.Source().GetCertificate },
			callers.configure,
		},
	})
	endpoints = endpoints.restricted(callers)
	endpoints.leaving = &leaving{}
	endpoints.Register(server)
	server.Register(healthPath, http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.WriteHeader(http.StatusOK)
	}))
	return &webhooks{
		server:       server,
		certificates: certificates,
		callers:      callers,
		leaving:      endpoints.leaving,
		address:      net.JoinHostPort("localhost", strconv.Itoa(env.Options.Certificates.Port)),
		name:         env.Options.Certificates.Names()[0],
	}, nil
}

// ready calls this server's health check as the API server would: through TLS, trusting the CA, under the name of the
// Service. External certificates need not be valid for localhost.
func (w *webhooks) ready(ctx context.Context) error {
	select {
	case <-w.certificates.Initialized():
	default:
		if err := w.certificates.Err(); err != nil {
			return fmt.Errorf("certificates are not ready: %w", err)
		}
		return errors.New("certificates are not ready yet")
	}

	ctx, cancel := context.WithTimeout(ctx, selfCheckTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+w.address+healthPath, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{
			RootCAs:    w.certificates.Source().Roots(),
			ServerName: w.name,
			MinVersion: tls.VersionTLS12,
		},
		DisableKeepAlives: true,
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("webhook server answers %s", response.Status)
	}
	return nil
}

// wait returns when the server answers with certificates that the API server trusts.
func (w *webhooks) wait(ctx context.Context, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := w.ready(limited)
		if err == nil {
			return nil
		}
		if pause(limited, selfCheckPause) != nil {
			return fmt.Errorf("wait %s for webhooks: %w", timeout, err)
		}
	}
}

// pause waits, or returns early with an error when ctx ends.
func pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

package manager

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// callersReread is how old the CA of callers may be; it is read again when a request comes later.
const callersReread = 10 * time.Second

// callers recognizes the API server by its client certificate.
type callers struct {
	file  string
	names []string // empty: any

	mu   sync.Mutex
	pool *x509.CertPool
	read time.Time
}

// newCallers returns nil if every client may call.
func newCallers(options Options) (*callers, error) {
	if options.WebhookClientCAFile == "" {
		return nil, nil
	}
	c := &callers{file: options.WebhookClientCAFile, names: options.WebhookClientNames}
	if _, err := c.roots(time.Now()); err != nil {
		return nil, fmt.Errorf("read the CA of webhook callers: %w", err)
	}
	return c, nil
}

// roots returns the CA. While the file cannot be read the last one counts.
func (c *callers) roots(now time.Time) (*x509.CertPool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool != nil && now.Sub(c.read) < callersReread {
		return c.pool, nil
	}
	text, err := os.ReadFile(c.file)
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("it lacks a certificate")
	}
	if err != nil && c.pool == nil {
		return nil, err
	}
	if err == nil {
		c.pool = pool
	}
	c.read = now
	return c.pool, nil
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
		if r.TLS == nil || !c.know(r.TLS.PeerCertificates, time.Now()) {
			w.Header().Set("Connection", "close") // the server would wait for the rest of the body
			http.Error(w, "a client certificate of the API server is required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// know reports whether the CA has signed the first certificate, for a client with one of the names. TLS has proved that
// the client has its key.
func (c *callers) know(chain []*x509.Certificate, now time.Time) bool {
	if len(chain) == 0 {
		return false
	}
	roots, err := c.roots(now)
	if err != nil {
		return false
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err = chain[0].Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: between,
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil && (len(c.names) == 0 || slices.Contains(c.names, chain[0].Subject.CommonName))
}

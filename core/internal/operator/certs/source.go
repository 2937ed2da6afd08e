package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Source provides the serving certificate to the webhook server, from memory: a new one is used from the next handshake
// on, without a file or a restart. The zero value has no certificate yet.
type Source struct {
	served atomic.Pointer[served]
}

type served struct {
	content     Content
	certificate *tls.Certificate
	ca          *x509.Certificate
	roots       *x509.CertPool
}

// GetCertificate implements tls.Config.GetCertificate.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	current := s.served.Load()
	if current == nil {
		return nil, errors.New("there is no serving certificate yet")
	}
	return current.certificate, nil
}

// Roots returns the CAs that a client of the server has to trust; nil if nothing is served yet.
func (s *Source) Roots() *x509.CertPool {
	current := s.served.Load()
	if current == nil {
		return nil
	}
	return current.roots
}

// content returns the served content; nil if nothing is served yet.
func (s *Source) content() *Content {
	current := s.served.Load()
	if current == nil {
		return nil
	}
	return &current.content
}

// validAt reports whether a certificate is served that is valid at a time.
func (s *Source) validAt(now time.Time) bool {
	current := s.served.Load()
	return current != nil && valid(current.certificate.Leaf, now) == nil
}

// serve switches to the certificate of content.
func (s *Source) serve(content Content) error {
	certificate, err := tls.X509KeyPair(content.Serving.Certificate, content.Serving.Key)
	if err != nil {
		return fmt.Errorf("read serving certificate: %w", err)
	}
	ca, err := parse(content.CA.Certificate)
	if err != nil {
		return fmt.Errorf("read CA: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(content.Bundle())
	s.served.Store(&served{
		content:     content,
		certificate: &certificate,
		ca:          ca,
		roots:       roots,
	})
	return nil
}

package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

const (
	day = 24 * time.Hour

	caLife      = 3650 * day
	servingLife = 365 * day

	// backdate lets a certificate be valid for API servers with a clock that is behind ours.
	backdate = time.Hour

	caCommonName = "webhook-cert-ca"
)

// Authority issues and verifies certificates for one webhook server. It holds no state.
type Authority struct {
	// Names are the DNS names and IP addresses of the server; the first is also its common name.
	Names []string
	// RenewBefore is how long before its end the serving certificate is replaced, at most half of its life.
	// Zero means a third of its life.
	RenewBefore time.Duration
	// Random is the source of randomness for keys and serial numbers.
	Random io.Reader
	// NewKey generates a private key; NewRSAKey in production.
	NewKey func(random io.Reader) (crypto.Signer, error)
}

// NewRSAKey generates an RSA key of 2048 bits.
func NewRSAKey(random io.Reader) (crypto.Signer, error) { return rsa.GenerateKey(random, 2048) }

// newCA issues a self-signed CA certificate.
func (a Authority) newCA(now time.Time) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:               pkix.Name{CommonName: caCommonName},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, nil)
}

// newServing issues a serving certificate that does not outlive its CA.
func (a Authority) newServing(ca Pair, now time.Time) (Pair, error) {
	issuer, err := tls.X509KeyPair(ca.Certificate, ca.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("read CA: %w", err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: a.Names[0]},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(servingLife),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if issuer.Leaf.NotAfter.Before(template.NotAfter) {
		template.NotAfter = issuer.Leaf.NotAfter
	}
	for _, name := range a.Names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return a.issue(template, &issuer)
}

// issue signs a template with the issuer's key, or self-signs it when there is no issuer.
func (a Authority) issue(template *x509.Certificate, issuer *tls.Certificate) (Pair, error) {
	key, err := a.NewKey(a.Random)
	if err != nil {
		return Pair{}, fmt.Errorf("make private key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(a.Random, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, fmt.Errorf("make serial number: %w", err)
	}
	parent := template
	signer := crypto.PrivateKey(key)
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey
	}
	certificate, err := x509.CreateCertificate(a.Random, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	encodedKey, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		Key:         encodedKey,
	}, nil
}

// encodeKey encodes keys in the form that OpenKruise reads.
func encodeKey(key crypto.Signer) ([]byte, error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return nil, fmt.Errorf("encode private key: %w", err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
	default:
		return nil, fmt.Errorf("encode private key: unknown type %T", key)
	}
}

// canSign returns an error if a CA cannot issue certificates at a time: it has to be a CA, valid, and match its key.
func (a Authority) canSign(ca Pair, now time.Time) error {
	pair, err := tls.X509KeyPair(ca.Certificate, ca.Key)
	if err != nil {
		return fmt.Errorf("read CA: %w", err)
	}
	if !pair.Leaf.IsCA {
		return errors.New("a CA certificate is required")
	}
	return valid(pair.Leaf, now)
}

// canServe returns an error if content's serving certificate does not work at a time: it has to match its key, and a
// client that trusts the bundle has to accept it for every name of the server.
func (a Authority) canServe(content Content, now time.Time) error {
	pair, err := tls.X509KeyPair(content.Serving.Certificate, content.Serving.Key)
	if err != nil {
		return fmt.Errorf("read serving certificate: %w", err)
	}
	return a.verify(pair, content.Bundle(), now)
}

// verify makes the checks of a client that trusts the bundle.
func (a Authority) verify(serving tls.Certificate, bundle []byte, now time.Time) error {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, der := range serving.Certificate[1:] {
		if intermediate, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(intermediate)
		}
	}
	if _, err := serving.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}); err != nil {
		return fmt.Errorf("verify serving certificate: %w", err)
	}
	for _, name := range a.Names {
		if err := serving.Leaf.VerifyHostname(name); err != nil {
			return fmt.Errorf("verify serving certificate: %w", err)
		}
	}
	return nil
}

func valid(certificate *x509.Certificate, now time.Time) error {
	if now.Before(certificate.NotBefore) || now.After(certificate.NotAfter) {
		return fmt.Errorf("certificate of %s is valid from %s to %s", certificate.Subject.CommonName,
			certificate.NotBefore.Format(time.RFC3339), certificate.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// renewal returns how long before its end a certificate is replaced. A renewBefore of zero means a third of its life.
func renewal(certificate *x509.Certificate, renewBefore time.Duration) time.Time {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	if renewBefore <= 0 {
		renewBefore = life / 3
	}
	return certificate.NotAfter.Add(-min(renewBefore, life/2))
}

// parse parses the first certificate of a PEM file.
func parse(certificate []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return nil, errors.New("the PEM block is missing")
	}
	return x509.ParseCertificate(block.Bytes)
}

package certs

import (
	"bytes"
	"maps"
)

// The keys of the Secret. The first six are OpenKruise's, so that a Secret can be taken over in both
// directions; the next three exist during a rotation only.
const (
	caKeyKey         = "ca-key.pem"
	caCertificateKey = "ca-cert.pem"

	servingKeyKey         = "key.pem"
	servingCertificateKey = "cert.pem"
	tlsKeyKey             = "tls.key" // same as key.pem
	tlsCertificateKey     = "tls.crt" // same as cert.pem

	nextKeyKey             = "next-ca-key.pem"
	nextCertificateKey     = "next-ca-cert.pem"
	previousCertificateKey = "previous-ca-cert.pem"

	// bundleKey has all trusted CA certificates, for clients other than API servers, such as Prometheus. The key is that of
	// cert-manager, so that it also has the CA of external certificates.
	bundleKey = "ca.crt"
)

// Pair is a certificate and its private key, both in PEM.
type Pair struct {
	Certificate, Key []byte
}

func (p Pair) empty() bool { return len(p.Certificate) == 0 && len(p.Key) == 0 }

// Content is the content of the Secret.
type Content struct {
	// CA signs the serving certificate.
	CA Pair
	// Next is a CA that is trusted already and does not sign yet. Empty outside rotations.
	Next Pair
	// Previous is the certificate of a CA that is still trusted and does not sign any more. Its key is gone.
	Previous []byte
	// Serving is the serving certificate of the webhook server.
	Serving Pair
}

// readContent reads the content from a Secret's data, also from one that OpenKruise wrote. Absent keys are empty; the
// certificates are not verified here.
func readContent(data map[string][]byte) Content {
	first := func(keys ...string) []byte {
		for _, key := range keys {
			if len(data[key]) > 0 {
				return data[key]
			}
		}
		return nil
	}
	return Content{
		CA:       Pair{Certificate: data[caCertificateKey], Key: data[caKeyKey]},
		Next:     Pair{Certificate: data[nextCertificateKey], Key: data[nextKeyKey]},
		Previous: data[previousCertificateKey],
		Serving:  Pair{Certificate: first(servingCertificateKey, tlsCertificateKey), Key: first(servingKeyKey, tlsKeyKey)},
	}
}

// readExternal reads the content from a Secret that is maintained externally: ca.crt, tls.crt and tls.key.
func readExternal(data map[string][]byte) Content {
	return Content{
		CA:      Pair{Certificate: data[bundleKey]},
		Serving: Pair{Certificate: data[tlsCertificateKey], Key: data[tlsKeyKey]},
	}
}

// completes reports whether data is what Data would write: Secrets of OpenKruise lack the bundle.
func (c Content) completes(data map[string][]byte) bool {
	return maps.EqualFunc(c.Data(data), data, bytes.Equal)
}

// Data returns the data of the Secret. Other keys in present are kept.
func (c Content) Data(present map[string][]byte) map[string][]byte {
	data := maps.Clone(present)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range map[string][]byte{
		caCertificateKey:       c.CA.Certificate,
		caKeyKey:               c.CA.Key,
		nextCertificateKey:     c.Next.Certificate,
		nextKeyKey:             c.Next.Key,
		previousCertificateKey: c.Previous,
		servingCertificateKey:  c.Serving.Certificate,
		tlsCertificateKey:      c.Serving.Certificate,
		servingKeyKey:          c.Serving.Key,
		tlsKeyKey:              c.Serving.Key,
		bundleKey:              c.Bundle(),
	} {
		if len(value) == 0 {
			delete(data, key)
			continue
		}
		data[key] = value
	}
	return data
}

// Bundle returns all trusted CA certificates in PEM: the value of caBundle.
func (c Content) Bundle() []byte {
	var bundle bytes.Buffer
	for _, certificate := range [][]byte{c.CA.Certificate, c.Next.Certificate, c.Previous} {
		trimmed := bytes.TrimSpace(certificate)
		if len(trimmed) > 0 {
			bundle.Write(trimmed)
			bundle.WriteByte('\n')
		}
	}
	return bundle.Bytes()
}

func (c Content) equal(other Content) bool {
	return maps.EqualFunc(c.Data(nil), other.Data(nil), bytes.Equal)
}

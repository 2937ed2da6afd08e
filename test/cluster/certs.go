package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificateLife is longer than any test cluster runs.
const certificateLife = 10 * 365 * 24 * time.Hour

// keyPair is a certificate and its key, both as PEM.
type keyPair struct {
	cert, key []byte
}

// authority signs the certificates of one cluster.
type authority struct {
	keyPair
	parsed *x509.Certificate
	signer *ecdsa.PrivateKey
	now    time.Time
}

// identity is the subject of a certificate.
type identity struct {
	user, group string
	hosts       []string // IP addresses and names it may serve under
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the authority's key: %w", err)
	}
	a := &authority{signer: key, now: now}
	template := a.template(pkix.Name{CommonName: "kubernetes-ca"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a.keyPair, err = encode(template, template, key, key)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(a.cert)
	a.parsed, err = x509.ParseCertificate(block.Bytes)
	return a, err
}

// issue makes a certificate for both clients and servers.
func (a *authority) issue(id identity) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate a key for %s: %w", id.user, err)
	}
	subject := pkix.Name{CommonName: id.user}
	if id.group != "" {
		subject.Organization = []string{id.group}
	}
	template := a.template(subject)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, host := range id.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return encode(template, a.parsed, key, a.signer)
}

func (a *authority) template(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		serial = big.NewInt(a.now.UnixNano()) // unique enough for a cluster of one machine
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    a.now.Add(-time.Hour), // tolerate clients whose clock is behind
		NotAfter:     a.now.Add(certificateLife),
	}
}

func encode(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (keyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	return keyPair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: keyPEM}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// newServiceAccountKey makes the key that signs service account tokens; the pair's certificate is the bare public key.
func newServiceAccountKey() (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate the service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode the service account key: %w", err)
	}
	private, err := encodeKey(key)
	return keyPair{cert: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), key: private}, err
}

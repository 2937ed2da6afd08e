package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

var certificateTime = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func parseCertificate(t *testing.T, pair keyPair) *x509.Certificate {
	t.Helper()
	_, err := tls.X509KeyPair(pair.cert, pair.key)
	require.NoError(t, err, "the key belongs to the certificate")
	block, _ := pem.Decode(pair.cert)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return certificate
}

func TestIssuedCertificatesServeAndIdentify(t *testing.T) {
	ca, err := newAuthority(certificateTime)
	require.NoError(t, err)
	pair, err := ca.issue(identity{user: "system:node:n0", group: "system:nodes", hosts: []string{"10.210.0.10", "n0"}})
	require.NoError(t, err)
	certificate := parseCertificate(t, pair)
	assert.Equal(t, "system:node:n0", certificate.Subject.CommonName)
	assert.Equal(t, []string{"system:nodes"}, certificate.Subject.Organization)

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca.cert))
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		for _, host := range []string{"10.210.0.10", "n0"} {
			_, err := certificate.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: certificateTime.AddDate(9, 0, 0),
			})
			require.NoError(t, err, host)
		}
	}
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: "n1", CurrentTime: certificateTime})
	assert.Error(t, err, "a name that was not asked for")
}

func TestAPIServerIsTrustedUnderEveryAddressInUse(t *testing.T) {
	names := realEndpoints().names()
	for _, name := range []string{"127.0.0.1", controlPlaneAddress, apiServiceAddress, "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"} {
		assert.Contains(t, names, name)
	}
}

func TestKubeconfigIsSelfContained(t *testing.T) {
	ca, err := newAuthority(certificateTime)
	require.NoError(t, err)
	pair, err := ca.issue(identity{user: "admin", group: administrators})
	require.NoError(t, err)
	data, err := kubeconfig("example", "admin", "https://127.0.0.1:7443", ca.cert, pair)
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:7443", config.Host)
	assert.Equal(t, ca.cert, config.CAData)
	assert.Equal(t, pair.cert, config.CertData)
	assert.Equal(t, pair.key, config.KeyData)
}

func TestCredentialsOfAllPartsAreWritten(t *testing.T) {
	s := exampleState()
	s.Folder = t.TempDir()
	require.NoError(t, writeCredentials(s, realEndpoints(), certificateTime))
	l := s.layout()
	for _, path := range []string{l.pki("ca.key"), l.pki("apiserver.crt"), l.pki("service-account.key"), l.path("audit-policy.yaml"),
		l.kubeconfig("scheduler"), l.config("n1", "kubelet.kubeconfig"), l.config("n1", "kubelet.key")} {
		assert.FileExists(t, path)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig("admin"))
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:7443", admin.Host)
	scheduler, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig("scheduler"))
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:443", scheduler.Host)
}

package manager

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// call is one request by HTTPS to a server whose certificate is verified if there are roots.
type call struct {
	address, path, token string
	body                 []byte
	certificate          *tls.Certificate
	roots                *x509.CertPool
}

func (c call) do(ctx context.Context) (int, string) {
	config := &tls.Config{InsecureSkipVerify: c.roots == nil, RootCAs: c.roots, ServerName: "localhost"} //nolint:gosec // without roots it does not matter who answers
	if c.certificate != nil {
		config.Certificates = []tls.Certificate{*c.certificate}
	}
	method := http.MethodGet
	if c.body != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, "https://"+c.address+c.path, bytes.NewReader(c.body))
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := (&http.Transport{TLSClientConfig: config, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(answer)
}

// token makes a service account that may do what the rules say, and returns a token of it.
func token(t *testing.T, admin client.Client, namespace, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	for _, object := range []client.Object{account, role, binding} {
		require.NoError(t, admin.Create(t.Context(), object))
	}
	request := &authenticationv1.TokenRequest{}
	require.NoError(t, admin.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// Metrics tell how a cluster is used, so they are for those who may read them.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	admin, namespace := apiServer.Client(t), apiServer.Namespace(t)
	options := testOptions(t, namespace)
	options.MetricsSecure = true
	startPlain(t, options).eventuallyReady(t)
	reader := token(t, admin, namespace, "reader", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	stranger := token(t, admin, namespace, "stranger")

	scrape := call{address: options.MetricsAddr, path: "/metrics", token: reader}
	await.Until(t, func(c *assert.CollectT) {
		code, page := scrape.do(t.Context())
		assert.Equal(c, http.StatusOK, code, page)
		assert.Contains(c, page, "kruise_manager_is_leader 1")
	})
	for want, secret := range map[int]string{http.StatusUnauthorized: "", http.StatusForbidden: stranger} {
		scrape.token = secret
		code, page := scrape.do(t.Context())
		assert.Equal(t, want, code)
		assert.NotContains(t, page, "kruise_")
	}
	code, page := get(t.Context(), options.MetricsAddr, "/metrics")
	assert.NotEqual(t, http.StatusOK, code)
	assert.NotContains(t, page, "kruise_", "not by HTTP")
}

// Prometheus verifies an operator with the CA in the Secret, under the name of the Service or the host of the webhooks, before it
// sends its token.
func TestMetricsShowTheCertificateOfTheWebhooks(t *testing.T) {
	admin, namespace := apiServer.Client(t), apiServer.Namespace(t)
	options := testOptions(t, namespace)
	options.MetricsSecure = true
	here := "https://" + net.JoinHostPort("localhost", strconv.Itoa(options.Certificates.Port))
	installWebhooks(t, admin, here)
	createDefinition(t, admin, here)
	start(t, options).eventuallyReady(t)
	reader := token(t, admin, namespace, "reader", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})

	var secret corev1.Secret
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "widget-webhook-certs"}, &secret))
	scrape := call{address: options.MetricsAddr, path: "/metrics", token: reader, roots: x509.NewCertPool()}
	require.True(t, scrape.roots.AppendCertsFromPEM(secret.Data["ca.crt"]))
	await.Until(t, func(c *assert.CollectT) { // a replica may be ready before it serves its metrics
		code, page := scrape.do(t.Context())
		assert.Equal(c, http.StatusOK, code, page)
	})

	scrape.roots = x509.NewCertPool()
	_, page := scrape.do(t.Context())
	assert.Contains(t, page, "unknown authority")
}

// authority makes client certificates that a CA in a file has signed.
func authority(t *testing.T, names ...string) (file string, certificates map[string]tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "callers"}, key)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: ca.Raw}), 0o600))
	certificates = map[string]tls.Certificate{}
	for _, name := range names {
		certificate, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, ca, key.Public(), key)
		require.NoError(t, err)
		certificates[name] = tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
	}
	return file, certificates
}

// A webhook answers with what it finds in the cluster. Where the API server shows a certificate, nobody else
// is answered, and probes and conversions go on.
func TestOnlyTheAPIServerMayCall(t *testing.T) {
	admin, namespace := apiServer.Client(t), apiServer.Namespace(t)
	ca, certificates := authority(t, "kube-apiserver", "kubelet")
	_, foreign := authority(t, "kube-apiserver")
	options := testOptions(t, namespace)
	options.WebhookClientCAFile, options.WebhookClientNames = ca, []string{"kube-apiserver"}
	here := net.JoinHostPort("localhost", strconv.Itoa(options.Certificates.Port))
	installWebhooks(t, admin, "https://"+here)
	createDefinition(t, admin, "https://"+here)
	start(t, options).eventuallyReady(t)

	kind := widgetKind()
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "request", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: widgetGroup, Version: "v1beta1", Kind: "Widget"},
			Object: runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"a"},"spec":{}}`)},
		},
	})
	require.NoError(t, err)
	for _, path := range []string{kind.MutatePath(), kind.ValidatePath()} {
		ask := func(certificate *tls.Certificate) (int, string) {
			return call{address: here, path: path, body: review, certificate: certificate}.do(t.Context())
		}
		server, kubelet, other := certificates["kube-apiserver"], certificates["kubelet"], foreign["kube-apiserver"]
		code, answer := ask(&server)
		assert.Equal(t, http.StatusOK, code, answer)
		assert.Contains(t, answer, `"allowed":true`)
		for who, certificate := range map[string]*tls.Certificate{"nobody": nil, "a kubelet": &kubelet, "of another CA": &other} {
			code, answer := ask(certificate)
			assert.Equal(t, http.StatusUnauthorized, code, who)
			assert.NotContains(t, answer, "allowed", who)
		}
	}
	conversion := []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"example.com/v1beta1","objects":[]}}`)
	code, answer := call{address: here, path: admission.ConvertPath, body: conversion}.do(t.Context())
	assert.Equal(t, http.StatusOK, code, answer)
}

// Callers of a CA that replaces the former one are known some seconds later, and while the file is broken those before.
func TestTheCAOfCallersIsReadAgain(t *testing.T) {
	file, certificates := authority(t, "first")
	other, others := authority(t, "second")
	c, err := newCallers(Options{WebhookClientCAFile: file})
	require.NoError(t, err)
	knows := func(certificate tls.Certificate, now time.Time) bool {
		parsed, err := x509.ParseCertificate(certificate.Certificate[0])
		require.NoError(t, err)
		return c.know([]*x509.Certificate{parsed}, now)
	}
	now := time.Now()
	assert.True(t, knows(certificates["first"], now))
	assert.False(t, knows(others["second"], now))

	text, err := os.ReadFile(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	assert.True(t, knows(certificates["first"], now.Add(callersReread-time.Second)))
	assert.False(t, knows(certificates["first"], now.Add(callersReread+time.Second)))
	assert.True(t, knows(others["second"], now.Add(callersReread+time.Second)))

	require.NoError(t, os.WriteFile(file, []byte("broken"), 0o600))
	assert.True(t, knows(others["second"], now.Add(3*callersReread)))
	assert.False(t, knows(others["second"], now.AddDate(20, 0, 0)), "it has expired")
	_, err = newCallers(Options{WebhookClientCAFile: file})
	require.EqualError(t, err, "read the CA of webhook callers: it lacks a certificate")
}

func TestOperatorEndsWithoutTheCAThatItIsTold(t *testing.T) {
	options := testOptions(t, apiServer.Namespace(t))
	options.WebhookClientCAFile = filepath.Join(t.TempDir(), "missing")
	operator := Operator{Feature: "widget", Webhooks: widgetWebhooks}
	assert.ErrorContains(t, Run(t.Context(), operator, options, apiServer.Config, logr.Discard()), "read the CA of webhook callers")
}

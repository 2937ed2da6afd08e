package story

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/install"
)

// tokenLife is longer than the stories of a suite take.
const tokenLife = 6 * time.Hour

// Samples are the values of metrics by name and labels, such as `workqueue_depth{name="cloneset"}`.
type Samples map[string]float64

// serverMetrics returns the present metrics of the API server.
func (w World) serverMetrics(ctx context.Context) (Samples, error) {
	page, err := w.page(ctx, "/metrics")
	return parseSamples(page), err
}

// operatorMetrics returns the present metrics of the feature's manager.
func (w World) operatorMetrics(ctx context.Context, feature string) (Samples, error) {
	page, err := w.metricsPage(ctx, feature)
	return parseSamples(page), err
}

// MetricsPage returns the metrics of the feature's manager, of which exactly one pod must run, as text.
func (w World) MetricsPage(t *testing.T, feature string) string {
	t.Helper()
	page, err := w.metricsPage(t.Context(), feature)
	require.NoError(t, err)
	return page
}

func (w World) metricsPage(ctx context.Context, feature string) (string, error) {
	list := &corev1.PodList{}
	err := w.Client.List(ctx, list, client.InNamespace(install.Namespace), client.MatchingLabels{"app.kubernetes.io/name": feature + "-manager"})
	if err != nil {
		return "", err
	}
	pods := Active(list.Items)
	if len(pods) != 1 {
		return "", fmt.Errorf("%d pods of %s are there", len(pods), feature)
	}
	code, page, err := w.scrape(ctx, "https://"+pods[0].Status.PodIP+":8080/metrics", w.token)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("the metrics of %s answer %d: %s", feature, code, page)
	}
	return page, err
}

// MetricsAreForReaders checks that all pods with the name in label app.kubernetes.io/name serve metrics by TLS, only to
// clients with the right to read them, and serve profiles to no client.
func (w World) MetricsAreForReaders(t *testing.T, name string, metrics, profiles int) {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, w.Client.List(t.Context(), list, client.InNamespace(install.Namespace), client.MatchingLabels{"app.kubernetes.io/name": name}))
	pods := Active(list.Items)
	require.NotEmpty(t, pods)
	for _, pod := range pods {
		at := fmt.Sprintf("%s:%d/metrics", pod.Status.PodIP, metrics)
		code, page, err := w.scrape(t.Context(), "https://"+at, w.token)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, code, page)
		assert.Contains(t, page, "process_cpu_seconds_total")
		code, page, err = w.scrape(t.Context(), "https://"+at, "")
		require.NoError(t, err)
		assert.Equal(t, http.StatusUnauthorized, code, page)
		code, page, err = w.scrape(t.Context(), "http://"+at, w.token)
		assert.False(t, err == nil && code == http.StatusOK, page)
		_, page, err = w.scrape(t.Context(), fmt.Sprintf("http://%s:%d/debug/pprof/cmdline", pod.Status.PodIP, profiles), w.token)
		assert.Error(t, err, page)
	}
}

// newReader makes an account that may read the metrics of the suite's features, as Prometheus would have it, and
// returns a token of it.
func (w World) newReader(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "prometheus"}}
	made := []client.Object{account}
	for _, feature := range w.suite.Features {
		made = append(made, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "prometheus-" + feature},
			RoleRef: rbacv1.RoleRef{
				APIGroup: rbacv1.GroupName,
				Kind:     "ClusterRole",
				Name:     feature + "-metrics-reader",
			},
			Subjects: []rbacv1.Subject{{
				Kind:      rbacv1.ServiceAccountKind,
				Namespace: account.Namespace,
				Name:      account.Name,
			}},
		})
	}
	for _, object := range made {
		if err := w.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("let somebody read metrics: %w", err)
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife.Seconds()))}}
	if err := w.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return request.Status.Token, nil
}

// scrape gets a page from a pod. Metrics are served with a self-signed certificate.
func (w World) scrape(ctx context.Context, url, token string) (code int, page string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return w.Cluster.DialContext(ctx, address)
		},
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", fmt.Errorf("get %s: %w", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// page returns what the API server answers at the path.
func (w World) page(ctx context.Context, path string) (string, error) {
	out, err := w.kubectl(ctx, "", "get", "--raw", path)
	if err != nil {
		return "", fmt.Errorf("get %s: %w: %s", path, err, out)
	}
	return out, nil
}

// Of returns the samples of the metric, whatever their labels.
func (s Samples) Of(metric string) Samples {
	found := maps.Clone(s)
	maps.DeleteFunc(found, func(series string, _ float64) bool {
		name, _, _ := strings.Cut(series, "{")
		return name != metric
	})
	return found
}

// Sum adds up all samples of the metric.
func (s Samples) Sum(metric string) float64 {
	total := 0.0
	for _, value := range s.Of(metric) {
		total += value
	}
	return total
}

// parseSamples reads Prometheus' text format without time stamps, as Kubernetes serves it.
func parseSamples(page string) Samples {
	samples := Samples{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			samples[line[:at]] = value
		}
	}
	return samples
}

package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/internal/operator/certs"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// replica is an operator that runs.
type replica struct {
	options    Options
	agents     chan string // user agents of writes
	reconciled atomic.Int64
	fence      atomic.Pointer[string]
	slow       time.Duration // how long a bundle takes to be written into a webhook configuration
	stop       func() error
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) (address string, port int) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "localhost:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String(), listener.Addr().(*net.TCPAddr).Port
}

func testOptions(t *testing.T, namespace string) Options {
	t.Helper()
	options, err := ReadOptions(Operator{Feature: "widget"}, []string{
		"--enable-pprof=false", "--metrics-secure=false", "--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=200ms",
		"--webhook-lame-duck=0s",
	}, environment(map[string]string{"POD_NAMESPACE": namespace, "WEBHOOK_HOST": "localhost"}))
	require.NoError(t, err)
	options.HealthProbeAddr, _ = freeAddress(t)
	options.MetricsAddr, _ = freeAddress(t)
	_, options.Certificates.Port = freeAddress(t)
	return options
}

// start runs the widget operator, whose controller marks every widget.
func start(t *testing.T, options Options) *replica {
	t.Helper()
	r := &replica{options: options, agents: make(chan string, 1000)}
	operator := Operator{Feature: "widget", Schemes: []func(*runtime.Scheme) error{addWidgets}, CRDs: []string{widgetCRD}, Webhooks: widgetWebhooks}
	operator.Setup = func(_ context.Context, env *Environment) error {
		require.NotNil(t, env.Settings("widget", 0).Fence)
		require.Same(t, env.Settings("widget", 0).Fence, env.Settings("other", 0).Fence, "stores are compared once for all controllers")
		writer, err := env.Client("widget")
		if err != nil {
			return err
		}
		return builder.ControllerManagedBy(env.Manager).Named("widget").For(&widget{}).Complete(reconcile.Func(
			func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
				fence, err := env.LeaderVersion(ctx)
				if err != nil {
					return reconcile.Result{}, err
				}
				r.fence.Store(&fence)
				r.reconciled.Add(1)
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"seen":"true"}}}`))
				object := &widget{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
				return reconcile.Result{}, client.IgnoreNotFound(writer.Patch(ctx, object, patch))
			}))
	}

	r.run(t, operator)
	return r
}

// startPlain runs an operator without webhooks, kinds and controllers.
func startPlain(t *testing.T, options Options) *replica {
	t.Helper()
	r := &replica{options: options, agents: make(chan string, 1000)}
	r.run(t, Operator{Feature: "plain", Setup: func(context.Context, *Environment) error { return nil }})
	return r
}

func (r *replica) run(t *testing.T, operator Operator) {
	t.Helper()
	config := rest.CopyConfig(apiServer.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/widgets/") {
				r.agents <- request.UserAgent()
			}
			if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "webhookconfigurations/") {
				if err := pause(request.Context(), r.slow); err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(request)
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // Run gets no logger of the test: controller-runtime logs on after it has returned
	go func() { ended <- Run(ctx, operator, r.options, config, logr.Discard()) }()
	stopped := false
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { assert.NoError(t, r.stop()) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// get asks one of the operator's own servers.
func get(ctx context.Context, address, path string) (int, string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

func (r *replica) eventuallyReady(t *testing.T) {
	t.Helper()
	await.Until(t, func(c *assert.CollectT) {
		code, body := get(t.Context(), r.options.HealthProbeAddr, "/readyz")
		assert.Equal(c, http.StatusOK, code, body)
	})
}

// installWebhooks creates the two configurations of the widget operator, with URLs and without bundles.
func installWebhooks(t *testing.T, admin client.Client, url string) {
	t.Helper()
	kind := widgetKind()
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{widgetGroup}, APIVersions: []string{"v1alpha1", "v1beta1"}, Resources: []string{"widgets"}},
	}}
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(url + path)}
	}
	for _, object := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "widget-mutating"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "widget.example.com", ClientConfig: at(kind.MutatePath()), Rules: rules, AdmissionReviewVersions: []string{"v1"},
				SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), MatchPolicy: ptr.To(admissionregistrationv1.Exact),
			}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "widget-validating"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "widget.example.com", ClientConfig: at(kind.ValidatePath()), Rules: rules, AdmissionReviewVersions: []string{"v1"},
				SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), MatchPolicy: ptr.To(admissionregistrationv1.Exact),
			}},
		},
	} {
		require.NoError(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { _ = admin.Delete(context.Background(), object) })
	}
}

// createDefinition installs the CRD until the test ends.
func createDefinition(t *testing.T, admin client.Client, url string) {
	t.Helper()
	definition := widgetDefinition(url)
	require.NoError(t, admin.Create(t.Context(), definition))
	t.Cleanup(func() {
		assert.NoError(t, admin.Delete(context.Background(), definition))
		await.Until(t, func(check *assert.CollectT) {
			assert.True(check, apierrors.IsNotFound(admin.Get(context.Background(), client.ObjectKeyFromObject(definition), definition)))
		})
	})
}

// TestOperatorFromFirstStartToHandover is the life of an operator: it waits for its CRD, answers webhooks in both
// versions, reconciles, and hands over to another replica.
func TestOperatorFromFirstStartToHandover(t *testing.T) {
	admin, namespace := apiServer.Client(t), apiServer.Namespace(t)
	options := testOptions(t, namespace)
	url := fmt.Sprintf("https://localhost:%d", options.Certificates.Port)
	installWebhooks(t, admin, url)

	options.WebhookLameDuck = 10 * time.Second
	first := start(t, options)
	options.WebhookLameDuck = 0
	await.Until(t, func(c *assert.CollectT) {
		code, body := get(t.Context(), options.HealthProbeAddr, "/readyz?verbose")
		assert.Equal(c, http.StatusInternalServerError, code)
		assert.Contains(c, body, "[+]webhook-ready ok")
		assert.Contains(c, body, "[-]startup failed")
	})
	code, _ := get(t.Context(), options.HealthProbeAddr, "/healthz")
	assert.Equal(t, http.StatusOK, code, "alive while it waits")

	createDefinition(t, admin, url)
	first.eventuallyReady(t)

	old := &oldWidget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	await.Until(t, func(c *assert.CollectT) { // the API server takes a moment to notice bundles
		require.NoError(c, client.IgnoreAlreadyExists(admin.Create(t.Context(), old.DeepCopyObject().(*oldWidget))))
		require.NoError(c, admin.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	})
	assert.Equal(t, "Recreate", old.Spec.StrategyType, "defaulted in the version sent, stored as the hub, converted back")
	stored := &widget{}
	await.Until(t, func(c *assert.CollectT) {
		require.NoError(c, admin.Get(t.Context(), client.ObjectKeyFromObject(old), stored))
		assert.Equal(c, "true", stored.Labels["seen"])
	})
	assert.Equal(t, "Recreate", stored.Spec.Strategy.Type)
	assert.Equal(t, "widget-manager/widget", <-first.agents)

	odd := &oldWidget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "odd"}}
	odd.Spec.StrategyType = "Odd"
	err := admin.Create(t.Context(), odd)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.Contains(t, err.Error(), "spec.strategyType", "refused in the words of the version sent")

	await.Until(t, func(c *assert.CollectT) {
		_, scraped := get(t.Context(), options.MetricsAddr, "/metrics")
		assert.Contains(c, scraped, "kruise_manager_is_leader 1")
		assert.Contains(c, scraped, `flotilla_build_info{feature="widget"`)
		assert.Contains(c, scraped, `flotilla_webhook_certificate_expiry_timestamp_seconds{certificate="serving"}`)
	})

	var lease coordinationv1.Lease
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "widget-manager"}, &lease))
	firstHolder := *lease.Spec.HolderIdentity
	require.NotNil(t, first.fence.Load())
	stopped := make(chan error, 1)
	go func() { stopped <- first.stop() }()
	await.Until(t, func(c *assert.CollectT) {
		code, body := get(t.Context(), options.HealthProbeAddr, "/readyz?verbose")
		assert.Equal(c, http.StatusInternalServerError, code, body)
	})
	err = admin.Create(t.Context(), odd)
	require.True(t, apierrors.IsInvalid(err), "it is not ready any more, and answers all the same: %v", err)
	require.NoError(t, <-stopped)

	second := start(t, options)
	await.Until(t, func(check *assert.CollectT) { assert.Positive(check, second.reconciled.Load()) })
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "widget-manager"}, &lease))
	assert.NotEqual(t, firstHolder, *lease.Spec.HolderIdentity)
	assert.NotEqual(t, *first.fence.Load(), *second.fence.Load())
}

// A replica is ready when its webhooks can answer, or when nothing is to be waited for.
func TestOperatorIsReadyWhenItsCachesAreFilled(t *testing.T) {
	for name, result := range map[string]error{"filled": nil, "cannot be listed": errors.New("conversion webhook failed")} {
		t.Run(name, func(t *testing.T) {
			options := testOptions(t, apiServer.Namespace(t))
			filled := make(chan struct{})
			r := &replica{options: options}
			r.run(t, Operator{
				Feature: "plain", Setup: func(context.Context, *Environment) error { return nil },
				Fill: func(ctx context.Context, _ *Environment) error {
					select {
					case <-filled:
						return result
					case <-ctx.Done():
						return ctx.Err()
					}
				},
			})
			await.Until(t, func(c *assert.CollectT) {
				code, body := get(t.Context(), options.HealthProbeAddr, "/readyz?verbose")
				assert.Equal(c, http.StatusInternalServerError, code)
				assert.Contains(c, body, "[-]startup failed")
			})
			close(filled)
			r.eventuallyReady(t)
		})
	}
}

func TestOperatorThatCannotServeEnds(t *testing.T) {
	options := testOptions(t, apiServer.Namespace(t))
	options.WebhookInitializeTimeout = 3 * time.Second // there are no configurations to put a bundle into
	operator := Operator{Feature: "lonely", MutatingConfiguration: "0-lonely", Webhooks: func(context.Context, *Environment) (Webhooks, error) {
		return Webhooks{Mutating: []admission.Endpoint{{Path: "/mutate", Handler: http.NotFoundHandler()}}}, nil
	}}
	err := Run(t.Context(), operator, options, apiServer.Config, logr.Discard())
	assert.ErrorContains(t, err, "not found MutatingWebhookConfiguration 0-lonely")
}

// Certificates that somebody else maintains are made for the Service and for nothing else.
func TestExternalCertificatesNeedNotKnowLocalhost(t *testing.T) {
	admin, namespace := apiServer.Client(t), apiServer.Namespace(t)
	options := testOptions(t, namespace)
	options.FeatureGates = options.FeatureGates.With(features.EnableExternalCerts, true)
	options.Certificates.Host, options.Certificates.SecretName, options.Certificates.ServiceName = "", "external", "external-webhook"
	authority := certs.Authority{Names: []string{"external-webhook." + namespace + ".svc"}, Random: rand.Reader, NewKey: certs.NewRSAKey}
	made, err := authority.Plan(certs.Snapshot{Now: time.Now()})
	require.NoError(t, err)
	require.NoError(t, admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "external"},
		Data: map[string][]byte{
			"ca.crt": made.Content.CA.Certificate, "tls.crt": made.Content.Serving.Certificate, "tls.key": made.Content.Serving.Key,
		},
	}))
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "external-mutating"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "external.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service:  &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "external-webhook"},
				CABundle: made.Content.CA.Certificate,
			},
		}},
	}
	require.NoError(t, admin.Create(t.Context(), configuration))
	t.Cleanup(func() { _ = admin.Delete(context.Background(), configuration) })

	r := &replica{options: options, agents: make(chan string, 1)}
	r.run(t, Operator{
		Feature: "external",
		Setup:   func(context.Context, *Environment) error { return nil },
		Webhooks: func(context.Context, *Environment) (Webhooks, error) {
			return Webhooks{Mutating: []admission.Endpoint{{Path: "/mutate", Handler: http.NotFoundHandler()}}}, nil
		},
	})
	r.eventuallyReady(t)
}

func TestOperatorWithoutWebhooksNeedsNoCertificates(t *testing.T) {
	admin, namespace := apiServer.Client(t), apiServer.Namespace(t)
	options := testOptions(t, namespace)
	options.LeaderElection.Enabled = false

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fence := ""
	operator := Operator{Feature: "plain", Setup: func(ctx context.Context, env *Environment) error {
		var err error
		fence, err = env.LeaderVersion(ctx)
		cancel()
		return err
	}}
	require.NoError(t, Run(ctx, operator, options, apiServer.Config, logr.Discard()))
	assert.NotEmpty(t, fence)
	var secrets corev1.SecretList
	require.NoError(t, admin.List(t.Context(), &secrets, client.InNamespace(namespace)))
	assert.Empty(t, secrets.Items)
}

func TestProfilesAreServedAsAskedFor(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		options := testOptions(t, apiServer.Namespace(t))
		options.EnablePprof = enabled
		options.PprofAddr, _ = freeAddress(t)
		r := startPlain(t, options)
		r.eventuallyReady(t)
		if enabled {
			await.Until(t, func(c *assert.CollectT) {
				code, body := get(t.Context(), options.PprofAddr, "/debug/pprof/cmdline")
				assert.Equal(c, http.StatusOK, code, body)
			})
		} else {
			await.Until(t, func(c *assert.CollectT) { // all servers have started before the election
				_, scraped := get(t.Context(), options.MetricsAddr, "/metrics")
				assert.Contains(c, scraped, "kruise_manager_is_leader 1")
			})
			code, _ := get(t.Context(), options.PprofAddr, "/debug/pprof/cmdline")
			assert.Zero(t, code, "nobody listens")
		}
		require.NoError(t, r.stop())
	}
}

func TestOperatorEndsWhenAPortIsTaken(t *testing.T) {
	options := testOptions(t, apiServer.Namespace(t))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", options.MetricsAddr)
	require.NoError(t, err)
	defer listener.Close()
	operator := Operator{Feature: "plain", Setup: func(context.Context, *Environment) error { return nil }}
	assert.ErrorContains(t, Run(t.Context(), operator, options, apiServer.Config, logr.Discard()), "address already in use")
}

package certs

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

const moment = 20 * time.Millisecond

// place is a namespace with everything that one operator keeps.
type place struct {
	t     *testing.T
	admin client.Client
	clock *clocktesting.FakeClock
	name  string // of the namespace, the user, the configurations and the group of the CRD

	writes atomic.Int64 // requests of the controllers that change something
}

// newPlace installs configurations and a CRD as manifests do: without bundles. It skips the test when there is
// no API server.
func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, admin: env.Client(t), clock: clocktesting.NewFakeClock(time.Now()), name: env.Namespace(t)}
	p.create(p.mutating())
	p.create(p.validating())
	p.create(p.crd())
	return p
}

func (p *place) create(object client.Object) {
	p.t.Helper()
	require.NoError(p.t, p.admin.Create(p.t.Context(), object))
	p.t.Cleanup(func() { _ = p.admin.Delete(context.Background(), object) })
}

func (p *place) webhookNames() []string {
	return []string{"first." + p.name + ".example.com", "second." + p.name + ".example.com"}
}

func (p *place) mutating() *admissionregistrationv1.MutatingWebhookConfiguration {
	out := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	for _, name := range p.webhookNames() {
		out.Webhooks = append(out.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: name, ClientConfig: p.clientConfig(), AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		})
	}
	return out
}

func (p *place) validating() *admissionregistrationv1.ValidatingWebhookConfiguration {
	out := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	for _, name := range p.webhookNames() {
		out.Webhooks = append(out.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: name, ClientConfig: p.clientConfig(), AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		})
	}
	return out
}

func (p *place) clientConfig() admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: p.name, Name: "webhook", Path: new("/path")},
	}
}

func (p *place) crd() *apiextensionsv1.CustomResourceDefinition {
	group := p.name + ".example.com"
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", false), version("v1beta1", true)},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig: &apiextensionsv1.WebhookClientConfig{
						Service: &apiextensionsv1.ServiceReference{Namespace: p.name, Name: "webhook", Path: new("/convert")},
					},
				},
			},
		},
	}
}

// operatorConfig returns the configuration of a user who may touch nothing but the named objects, as design and role say.
func (p *place) operatorConfig() *rest.Config {
	p.t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: p.name}}
	p.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"admissionregistration.k8s.io"}, ResourceNames: []string{p.name},
			Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, Verbs: []string{"get", "list", "watch", "patch"},
		},
		{
			APIGroups: []string{"apiextensions.k8s.io"}, ResourceNames: []string{p.crd().Name, "missing.example.com"},
			Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch", "patch"},
		},
	}})
	p.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: p.name},
	})
	p.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: p.name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"certs"}, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
	}})
	p.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: p.name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: p.name},
	})
	config := env.User(p.t, p.name)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet {
				p.writes.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (p *place) options(config *rest.Config) Options {
	return Options{
		Config:   config,
		Settings: Settings{Namespace: p.name, SecretName: "certs", ServiceName: "webhook", Port: defaultPort},
		Mutating: []string{p.name}, Validating: []string{p.name}, CRDs: []string{p.crd().Name, "missing.example.com"},
		Clock: p.clock, Random: rand.Reader, NewKey: newSmallKey, Log: testr.New(p.t),
	}
}

// start runs replicas until the test ends.
func (p *place) start(options Options, count int) []*Controller {
	p.t.Helper()
	var controllers []*Controller
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, count)
	for range count {
		c, err := New(options)
		require.NoError(p.t, err)
		controllers = append(controllers, c)
	}
	for _, c := range controllers {
		go func() { ended <- c.Start(ctx) }()
	}
	p.t.Cleanup(func() {
		cancel()
		for range count {
			assert.NoError(p.t, <-ended)
		}
	})
	return controllers
}

func (p *place) initialized(controllers []*Controller) {
	p.t.Helper()
	for _, c := range controllers {
		await.Receive(p.t, c.Initialized(), "certificates are not in place")
	}
}

// secret returns the content of the Secret, empty when there is none.
func (p *place) secret(ctx context.Context) (Content, error) {
	var secret corev1.Secret
	err := p.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: "certs"}, &secret)
	return readContent(secret.Data), client.IgnoreNotFound(err)
}

// bundles returns what the API server trusts, place by place.
func (p *place) bundles(ctx context.Context) ([]string, error) {
	objects := []client.Object{p.mutating(), p.validating(), p.crd()}
	var out []string
	for _, object := range objects {
		if err := p.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, err
		}
		for _, reference := range references(object) {
			out = append(out, string(reference.present))
		}
	}
	return out, nil
}

// eventuallyTrusted waits until every place has exactly the bundle of the Secret, and the Secret is as wanted.
func (p *place) eventuallyTrusted(what string, wanted func(Content) bool) Content {
	p.t.Helper()
	var content Content
	await.Until(p.t, func(c *assert.CollectT) {
		var err error
		content, err = p.secret(p.t.Context())
		require.NoError(c, err)
		bundles, err := p.bundles(p.t.Context())
		require.NoError(c, err)
		require.Len(c, bundles, 5)
		for _, bundle := range bundles {
			require.Equal(c, string(content.Bundle()), bundle)
		}
		require.NotEmpty(c, content.Bundle())
		require.True(c, wanted(content), "%s: %s", what, describe(content))
	})
	return content
}

func describe(content Content) string {
	return fmt.Sprintf("next CA: %t, previous CA: %t, certificates in bundle: %d",
		!content.Next.empty(), len(content.Previous) > 0, strings.Count(string(content.Bundle()), "BEGIN"))
}

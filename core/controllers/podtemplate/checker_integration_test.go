package podtemplate_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

func template(change ...func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "test"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image:1"}}},
	}
	for _, f := range change {
		f(t)
	}
	return t
}

func mount(name string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].VolumeMounts = append(t.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
}

func checker(t *testing.T, c client.Client) (*podtemplate.Checker, *clocktesting.FakePassiveClock) {
	t.Helper()
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	return podtemplate.New(c, now), now
}

func TestDefaultIsTheClusters(t *testing.T) {
	ns := env.Namespace(t)
	c, _ := checker(t, env.Client(t))
	given := template(mount("data"))
	got, err := c.Default(t.Context(), ns, given, "data")
	require.NoError(t, err)
	assert.Equal(t, template(mount("data")), given, "the given template was changed")
	assert.Equal(t, corev1.RestartPolicyAlways, got.Spec.RestartPolicy)
	assert.Equal(t, corev1.DNSClusterFirst, got.Spec.DNSPolicy)
	assert.Equal(t, corev1.TerminationMessagePathDefault, got.Spec.Containers[0].TerminationMessagePath)
	assert.Equal(t, corev1.PullIfNotPresent, got.Spec.Containers[0].ImagePullPolicy)
	assert.Empty(t, got.Spec.Volumes, "the volume of the claim template has stayed")
	assert.Equal(t, map[string]string{"app": "test"}, got.Labels)

	var stored corev1.PodTemplateList
	require.NoError(t, env.Client(t).List(t.Context(), &stored, client.InNamespace(ns)))
	assert.Empty(t, stored.Items)
}

func TestValidateMapsThePaths(t *testing.T) {
	at := field.NewPath("spec", "template")
	tests := map[string]struct {
		template *corev1.PodTemplateSpec
		volumes  []string
		want     []string
	}{
		"valid": {template: template()},
		"missing image": {
			template: template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "" }),
			want:     []string{"spec.template.spec.containers[0].image: Required value"},
		},
		"two invalid fields": {
			template: template(func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Name = "Main_"
				t.Spec.ActiveDeadlineSeconds = ptr.To[int64](-5)
			}),
			want: []string{
				`spec.template.spec.containers[0].name: Invalid value: "Main_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
				`spec.template.spec.activeDeadlineSeconds: Invalid value: -5: must be between 1 and 2147483647, inclusive`,
			},
		},
		"invalid label": {
			template: template(func(t *corev1.PodTemplateSpec) { t.Labels["app"] = "no label" }),
			want: []string{
				`spec.template.labels: Invalid value: "no label": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			},
		},
		"mount of a claim template":  {template: template(mount("data")), volumes: []string{"data"}},
		"mount of nothing":           {template: template(mount("data")), want: []string{`spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"`}},
		"claim template over volume": {template: template(mount("data"), func(t *corev1.PodTemplateSpec) { t.Spec.Volumes = []corev1.Volume{{Name: "data"}} }), volumes: []string{"data"}},
	}
	c, _ := checker(t, env.Client(t))
	ns := env.Namespace(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			errs, err := c.Validate(t.Context(), ns, test.template, at, test.volumes...)
			require.NoError(t, err)
			var got []string
			for _, e := range errs {
				got = append(got, e.Error())
			}
			assert.ElementsMatch(t, test.want, got)
		})
	}
}

func TestInvalidTemplateHasNoDefaults(t *testing.T) {
	c, _ := checker(t, env.Client(t))
	_, err := c.Default(t.Context(), env.Namespace(t), template(mount("data")))
	require.True(t, apierrors.IsInvalid(err), "got %v", err)
}

func TestTerminatingOrMissingNamespacePasses(t *testing.T) {
	ns := env.Namespace(t)
	require.NoError(t, env.Client(t).Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	c, _ := checker(t, env.Client(t))
	for _, namespace := range []string{ns, "missing"} {
		errs, err := c.Validate(t.Context(), namespace, template(), field.NewPath("spec"))
		require.NoError(t, err)
		assert.Empty(t, errs)
		got, err := c.Default(t.Context(), namespace, template())
		require.NoError(t, err)
		assert.Equal(t, template(), got)
	}
}

func TestAnswersAreRememberedForAWhile(t *testing.T) {
	ns := env.Namespace(t)
	audit := env.Audit(t)
	c, now := checker(t, env.ClientAs(t, "checker"))
	asked := func() int { return len(audit.Requests(t, "checker")) }
	ask := func(tmpl *corev1.PodTemplateSpec) {
		_, err := c.Validate(t.Context(), ns, tmpl, field.NewPath("spec"))
		require.NoError(t, err)
	}
	ask(template())
	ask(template())
	_, err := c.Default(t.Context(), ns, template())
	require.NoError(t, err)
	assert.Equal(t, 1, asked())
	ask(template(mount("other")))
	assert.Equal(t, 2, asked())
	now.SetTime(now.Now().Add(time.Hour))
	ask(template())
	assert.Equal(t, 3, asked())
}

func TestMissingPermissionIsToldApart(t *testing.T) {
	ns := env.Namespace(t)
	config := env.ConfigAs(t, "nobody")
	config.Impersonate.UserName = "nobody"
	nobody, err := client.New(config, client.Options{Scheme: env.Scheme})
	require.NoError(t, err)
	c, _ := checker(t, nobody)
	_, err = c.Default(t.Context(), ns, template())
	var unavailable *podtemplate.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.ErrorContains(t, err, "the operator needs permission to create podtemplates in namespace "+ns)
	assert.True(t, apierrors.IsForbidden(err))
}

func TestUnreachableServerIsToldApart(t *testing.T) {
	config := env.ConfigAs(t, "test")
	config.Host = "https://127.0.0.1:1"
	mapper := env.Client(t).RESTMapper()
	far, err := client.New(config, client.Options{Scheme: env.Scheme, Mapper: mapper})
	require.NoError(t, err)
	c, _ := checker(t, far)
	_, err = c.Validate(t.Context(), "any", template(), field.NewPath("spec"))
	var unavailable *podtemplate.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.ErrorContains(t, err, "try again")
}

// Templates may be large, and whoever can reach the webhook can send any number of them.
func TestAnswersAreBoundedInBytes(t *testing.T) {
	ns := env.Namespace(t)
	audit := env.Audit(t)
	c, _ := checker(t, env.ClientAs(t, "large"))
	ask := func(image string) {
		t.Helper()
		_, err := c.Validate(t.Context(), ns, template(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image = image
			t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("x", 1<<20)}}
		}), field.NewPath("spec"))
		require.NoError(t, err)
	}
	for i := range 9 {
		ask(fmt.Sprintf("image:%d", i))
	}
	require.Len(t, audit.Requests(t, "large"), 9)
	ask("image:8")
	assert.Len(t, audit.Requests(t, "large"), 9, "the last one is remembered")
	ask("image:0")
	assert.Len(t, audit.Requests(t, "large"), 10, "more than 8 MiB are remembered")
}

// A controller asks about the templates of its own sets, all at once when it starts: each must have its answer.
func TestControllersAskAsOftenAsTheyNeed(t *testing.T) {
	server := &testenv.CreateCounter{}
	c, _ := checker(t, server)
	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() {
			_, err := c.Validate(t.Context(), "any", template(func(t *corev1.PodTemplateSpec) {
				t.Labels["number"] = strconv.Itoa(i)
			}), field.NewPath("spec"))
			assert.NoError(t, err)
		})
	}
	group.Wait()
	assert.EqualValues(t, 1000, server.Created())
}

package podtemplate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// rules answer what a cluster would, and count how often they are asked.
type rules struct {
	asked  int
	faults func(*corev1.PodTemplateSpec) field.ErrorList
	err    error
}

func (r *rules) Validate(_ context.Context, _ string, template *corev1.PodTemplateSpec, _ *field.Path, _ ...string) (field.ErrorList, error) {
	r.asked++
	if r.faults == nil {
		return nil, r.err
	}
	return r.faults(template), r.err
}

func (r *rules) Default(_ context.Context, _ string, template *corev1.PodTemplateSpec, _ ...string) (*corev1.PodTemplateSpec, error) {
	defaulted := template.DeepCopy()
	defaulted.Spec.DNSPolicy = corev1.DNSClusterFirst
	return defaulted, r.err
}

func newImage(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "image:2" }

func command(name string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Command = []string{name} }
}

func privileged(t *corev1.PodTemplateSpec) {
	t.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
}

func given(change ...func(*corev1.PodTemplateSpec)) podtemplate.Template {
	return podtemplate.Template{Pod: template(change...)}
}

func judge(t *testing.T, j podtemplate.Validator, now podtemplate.Template, old *podtemplate.Template) podtemplate.Change {
	t.Helper()
	found, err := j.ValidateChange(t.Context(), "shop", now, old, field.NewPath("spec", "template"))
	require.NoError(t, err)
	return found
}

func TestOnlyNewAndChangedTemplatesAreJudged(t *testing.T) {
	claims := podtemplate.Template{Pod: template(), Volumes: []string{"data"}}
	for name, c := range map[string]struct {
		old  *podtemplate.Template
		now  podtemplate.Template
		want int
	}{
		"created": {nil, given(), 1}, "unchanged": {new(given()), given(), 0},
		"another image": {new(given()), given(newImage), 1}, "one more claim": {new(given()), claims, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var asked rules
			found := judge(t, podtemplate.Validator{Cluster: &asked}, c.now, c.old)
			assert.Equal(t, c.want, asked.asked)
			assert.Equal(t, c.want == 1 && c.old != nil, found.After != nil, "defaults are asked for when two templates are compared")
		})
	}
}

func TestFaultsOfTheStoredTemplateAreLeftOut(t *testing.T) {
	stored, added := field.Required(field.NewPath("stored"), ""), field.Required(field.NewPath("added"), "")
	cluster := &rules{faults: func(template *corev1.PodTemplateSpec) field.ErrorList {
		if template.Spec.Containers[0].Image == "image:1" {
			return field.ErrorList{stored}
		}
		return field.ErrorList{stored, added}
	}}
	found := judge(t, podtemplate.Validator{Cluster: cluster}, given(newImage), new(given()))
	assert.Equal(t, field.ErrorList{added}, found.Errors)
	assert.Equal(t, corev1.DNSClusterFirst, found.Before.Spec.DNSPolicy)
	assert.Equal(t, "image:2", found.After.Spec.Containers[0].Image)
}

func TestNoAnswerIsAnError(t *testing.T) {
	_, err := podtemplate.Validator{Cluster: &rules{err: errors.New("timeout")}}.ValidateChange(t.Context(), "shop", given(), nil, nil)
	assert.True(t, apierrors.IsServiceUnavailable(err))
	assert.ErrorContains(t, err, "timeout")
}

// Flag --allow-privileged=false, which does not hold up workloads that are stored with privileged containers.
func TestPrivilegedContainersAreRefusedWhereForbidden(t *testing.T) {
	strict := podtemplate.Validator{Cluster: &rules{}, ForbidPrivileged: true}
	assert.Empty(t, judge(t, podtemplate.Validator{Cluster: &rules{}}, given(privileged), nil).Errors)
	found := judge(t, strict, given(privileged), nil).Errors
	require.Len(t, found, 1)
	assert.Equal(t, "spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy", found[0].Error())
	assert.Empty(t, judge(t, strict, given(privileged, newImage), new(given(privileged))).Errors)
}

func TestInPlaceOnlyRefusesWhatPodsCannotFollow(t *testing.T) {
	read := inplace.Options{DefaultPullPolicy: podspec.PullAlways}
	always := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways }
	for name, c := range map[string]struct {
		change func(*corev1.PodTemplateSpec)
		want   string
	}{
		"image":                  {newImage, ""},
		"pull policy as implied": {always, ""},
		"command":                {command("run"), "spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /containers/0/command"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := podtemplate.InPlaceOnly(podtemplate.Change{}, template(), template(c.change), field.NewPath("spec"), read)
			if c.want == "" {
				assert.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			assert.Contains(t, errs[0].Error(), c.want)
		})
	}
	assert.Len(t, podtemplate.InPlaceOnly(podtemplate.Change{}, template(), template(always), nil, inplace.Options{}), 1, "of another kind")
	vanishes := podtemplate.Change{Before: template(), After: template()}
	assert.Empty(t, podtemplate.InPlaceOnly(vanishes, template(), template(command("run")), nil, read), "the defaults make the change vanish")
}

func TestClaimTemplatesAreVolumes(t *testing.T) {
	claims := make([]corev1.PersistentVolumeClaim, 2)
	claims[0].Name, claims[1].Name = "data", "log"
	assert.Equal(t, []string{"data", "log"}, podtemplate.ClaimVolumes(claims))
}

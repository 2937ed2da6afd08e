package predownload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// given is a rollout of five pods from app:1 to app:2, with one container that stays.
func given(t *testing.T, change ...func(*Rollout)) Rollout {
	t.Helper()
	r := Rollout{
		Namespace: "shop", Owner: metav1.OwnerReference{Kind: "Web", Name: "web", UID: "uid", Controller: new(true)},
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Update:   newRevision(t, "app:2", "log:1"), From: []*appsv1.ControllerRevision{newRevision(t, "app:1", "log:1")},
		Template: revision.Template, Replicas: 5, Useful: func() bool { return true }, OldNodes: on("n1 n2 n3 n4 n5"),
		Jobs: Jobs{Version: "v1beta1"}, Now: now,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func newRevision(t *testing.T, images ...string) *appsv1.ControllerRevision {
	t.Helper()
	template := gen.Template(gen.Label("app", "web"))
	for _, image := range images {
		name, _, _ := strings.Cut(image, ":")
		if name == "proxy" { // a native sidecar
			template.Spec.InitContainers = []corev1.Container{{Name: name, Image: image, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
			continue
		}
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: name, Image: image})
	}
	template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "secret"}}
	owner := &metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "uid"}
	r, err := revision.New(owner, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Web"}, &template, 1, 0)
	require.NoError(t, err)
	return r
}

func ownedJob(name string, labels map[string]string) *Job {
	job := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	job.SetGroupVersionKind(contract.ImagePullJobGVK("v1beta1"))
	return &Job{PartialObjectMetadata: job}
}

// texts says what the wish writes, with "web-<hash>" for the update revision.
func texts(r Rollout, wish JobPlan) []string {
	var all []string
	for _, step := range wish.Steps {
		for _, a := range step.Actions {
			text := fmt.Sprintf("%s %s: %s", a.Verb, a.Object.GetName(), a.Message)
			all = append(all, strings.ReplaceAll(text, r.Update.Name, "web-<hash>"))
		}
	}
	return all
}

func TestImagesThatChangeArePulled(t *testing.T) {
	marked := func(label string) func(*Rollout) {
		return func(r *Rollout) { r.Update.Labels[label] = "true" }
	}
	pulled := []string{"Create web-<hash>-app: image app:2", "PatchMetadata web-<hash>: its images are pulled before the update"}
	useless := []string{"PatchMetadata web-<hash>: pulling images before the update is unnecessary"}
	for name, c := range map[string]struct {
		change func(*Rollout)
		want   []string
	}{
		"of one container": {func(*Rollout) {}, pulled},
		"of a native sidecar": {func(r *Rollout) {
			r.Update, r.From = newRevision(t, "app:1", "proxy:2"), []*appsv1.ControllerRevision{newRevision(t, "app:1", "proxy:1")}
		}, []string{"Create web-<hash>-proxy: image proxy:2", "PatchMetadata web-<hash>: its images are pulled before the update"}},
		"also if ignored once":   {marked(contract.ImagePreDownloadIgnoredLabel), pulled},
		"once":                   {marked(contract.ImagePreDownloadCreatedLabel), nil},
		"not of few replicas":    {func(r *Rollout) { r.Replicas = 3 }, useless},
		"unless each has a node": {func(r *Rollout) { r.Replicas, r.PerNode = 2, true }, pulled},
		"not without use":        {func(r *Rollout) { r.Useful = func() bool { return false } }, useless},
		"not before the proof":   {func(r *Rollout) { r.Settings.MinUpdatedReady, r.UpdatedReady = 2, 1 }, nil},
		"after the proof":        {func(r *Rollout) { r.Settings.MinUpdatedReady, r.UpdatedReady = 2, 2 }, pulled},
		"not while it must wait": {func(r *Rollout) { r.Jobs.RetryAt = now.Add(time.Second) }, nil},
		"of any older revision": {func(r *Rollout) { r.From = append(r.From, newRevision(t, "app:2", "log:0")) },
			[]string{"Create web-<hash>-app: image app:2", "Create web-<hash>-log: image log:1", "PatchMetadata web-<hash>: its images are pulled before the update"}},
		"not at the end": {func(r *Rollout) { r.From, r.Jobs.Owned = nil, append(r.Jobs.Owned, ownedJob("a", nil)) },
			[]string{"Delete a: pods no longer wait for the image"}},
		"and jobs of older updates end": {func(r *Rollout) {
			r.Jobs.Owned = append(r.Jobs.Owned, ownedJob("a", map[string]string{contract.RevisionHashLabel: "older"}), ownedJob("foreign", nil))
		}, append([]string{"Delete a: pods no longer wait for the image"}, pulled...)},
	} {
		t.Run(name, func(t *testing.T) {
			r := given(t, c.change)
			assert.Equal(t, c.want, texts(r, PlanJobs(r)))
		})
	}
}

func TestJobsSayWhatAndWhere(t *testing.T) {
	r := given(t, func(r *Rollout) {
		r.Settings = Settings{Parallelism: new(intstr.FromString("2")), TimeoutSeconds: new(int32(60))}
	})
	job := PlanJobs(r).Steps[0].Actions[0].Object.(*unstructured.Unstructured)
	hash := podstate.ShortHash(r.Update.Name)
	assert.Equal(t, "shop", job.GetNamespace())
	assert.Equal(t, map[string]string{"app": "web", contract.RevisionHashLabel: hash}, job.GetLabels())
	assert.Equal(t, []metav1.OwnerReference{r.Owner}, job.GetOwnerReferences())
	spec := job.Object["spec"].(map[string]any)
	assert.Equal(t, "app:2", spec["image"])
	assert.Equal(t, "2", spec["parallelism"])
	assert.Equal(t, int64(60), spec["pullPolicy"].(map[string]any)["timeoutSeconds"])
	assert.Equal(t, []any{"secret"}, spec["pullSecrets"])
	assert.Equal(t, map[string]any{
		"matchLabels": map[string]any{"app": "web"},
		"matchExpressions": []any{map[string]any{
			"key": contract.RevisionLabel, "operator": "NotIn", "values": []any{r.Update.Name, hash},
		}},
	}, spec["podSelector"])
	assert.Nil(t, r.Selector.MatchExpressions, "the workload's selector was changed")
}

func TestUsersHearWhyNothingIsPulled(t *testing.T) {
	asked := Settings{Configured: true}
	for name, c := range map[string]struct {
		settings Settings
		jobs     Jobs
		useful   bool
		want     string
	}{
		"not served":                 {asked, Jobs{}, true, EventUnavailable},
		"nobody asked":               {Settings{}, Jobs{}, true, ""},
		"it would be of no use":      {asked, Jobs{}, false, ""},
		"told before":                {asked, Jobs{ProblemReported: true}, true, ""},
		"trouble concerns everybody": {Settings{}, Jobs{Version: "v1beta1", Problem: "forbidden"}, true, EventFailed},
	} {
		t.Run(name, func(t *testing.T) {
			wish := PlanJobs(given(t, func(r *Rollout) {
				r.Settings, r.Jobs, r.Useful = c.settings, c.jobs, func() bool { return c.useful }
			}))
			assert.Equal(t, c.want != "", wish.ReportsProblem)
			assert.Empty(t, wish.Steps)
			if c.useful {
				assert.Equal(t, installCheck, wish.RequeueAfter)
			}
			if c.want != "" {
				require.Len(t, wish.Notices, 1)
				assert.Equal(t, c.want, wish.Notices[0].Reason)
			}
		})
	}
}

func TestUnreadableRevisionsAreTold(t *testing.T) {
	wish := PlanJobs(given(t, func(r *Rollout) { r.From[0].Data.Raw = nil }))
	assert.Empty(t, wish.Steps)
	require.Len(t, wish.Notices, 1)
	assert.Equal(t, EventFailed, wish.Notices[0].Reason)
}

func TestNamesOfJobsAreLegalAndDiffer(t *testing.T) {
	names := map[string]bool{}
	for _, revision := range []string{"web-abc", strings.Repeat("w", 200) + "-abc", strings.Repeat("w", 239) + "-abc"} {
		for _, container := range []string{"main", strings.Repeat("c", 62) + "1", strings.Repeat("c", 62) + "2"} {
			name := jobName(revision, container, 1)
			assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
			assert.False(t, names[name], "%s twice", name)
			names[name] = true
		}
	}
	assert.True(t, names["web-abc-main"])
}

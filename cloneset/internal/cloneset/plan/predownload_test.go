package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// pulling is the world of a set whose images can be pulled ahead: five old pods, partition 1.
func pulling(t *testing.T, options ...setOption) *world {
	t.Helper()
	w := given(t, 5, append([]setOption{policy(v1beta1.InPlaceIfPossible), partition("1"), maxUnavailable("20%")}, options...)...)
	w.featureGates.PreDownload = true
	w.pulls.Version = "v1beta1"
	return w.old(5)
}

func (w *world) marked(label string) *world {
	w.revisions[1].Labels[label] = "true"
	return w
}

// job is one that exists, of the revision with the hash; empty for a job of another make.
func (w *world) job(name, hash string) *world {
	job := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: gen.UID(name)}}
	if hash != "" {
		job.Labels = map[string]string{contract.RevisionHashLabel: hash}
	}
	job.SetGroupVersionKind(contract.ImagePullJobGVK("v1beta1"))
	w.pulls.Owned = append(w.pulls.Owned, &predownload.Job{PartialObjectMetadata: job})
	return w
}

func strategy(s workload.InPlaceUpdateStrategy) setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.InPlaceUpdateStrategy = &s })
}

func wantsReplicas(n int32) setOption { return func(s *v1beta1.CloneSet) { s.Spec.Replicas = &n } }

// changed gives the update revision a template that differs in more than the first image.
func (w *world) changed(change func(*corev1.PodTemplateSpec)) *world {
	template := w.set.Spec.Template.DeepCopy()
	change(template)
	r, err := revision.New(w.set, v1beta1.GroupVersion.WithKind(v1beta1.Kind), template, 2, 0)
	require.NoError(w.t, err)
	w.revisions[1] = r
	return w
}

// aside says what runs aside, with "web-<hash>" for the update revision.
func (w *world) aside() string {
	todo := w.plan()
	return strings.ReplaceAll((&action.Plan{Steps: todo.PreDownload.Steps}).String(), w.revisions[1].Name, "web-<hash>")
}

const (
	pulled = "pull:\n  Create imagepulljob web-<hash>-main (PreDownload): image app:2\n" +
		"mark:\n  PatchMetadata controllerrevision web-<hash> (PreDownload): its images are pulled before the update\n"
	madeBefore = "mark:\n  PatchMetadata controllerrevision web-<hash> (PreDownload): its images are pulled before the update\n"
	useless    = "mark:\n  PatchMetadata controllerrevision web-<hash> (PreDownload): pulling images before the update is unnecessary\n"
)

func deletes(job string) string {
	return "  Delete imagepulljob " + job + " (NoLongerWanted): pods no longer wait for the image\n"
}

func TestPreDownload(t *testing.T) {
	inPlaceOnly, recreate := policy(v1beta1.InPlaceOnly), policy(v1beta1.ReCreate)
	ported := func(s *corev1.PodTemplateSpec) { s.Spec.HostNetwork = true }
	relabelled := func(s *corev1.PodTemplateSpec) {
		s.Spec.Containers[0].Image = "app:1"
		s.Annotations = map[string]string{"a": "b"}
	}
	atLeastTwo := strategy(workload.InPlaceUpdateStrategy{ImagePreDownloadMinUpdatedReadyPods: new(int32(2))})
	for name, tt := range map[string]struct {
		give *world
		want string
	}{
		"an image changes in place":              {pulling(t), pulled},
		"or must change in place":                {pulling(t, inPlaceOnly), pulled},
		"paused rollouts are prepared too":       {pulling(t, paused()), pulled},
		"once for a revision":                    {pulling(t).marked(contract.ImagePreDownloadCreatedLabel), ""},
		"jobs that exist are not made again":     {pulling(t).onlyJob(), madeBefore},
		"no image changes":                       {pulling(t).changed(relabelled), madeBefore},
		"the feature gate is off":                {pulling(t).withoutPreDownload(), ""},
		"the revision is not written yet":        {pulling(t).unwritten(), ""},
		"pods are recreated":                     {pulling(t, recreate), useless},
		"there is no rollingUpdate":              {pulling(t, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate = nil }), useless},
		"users delete the pods":                  {pulling(t, onDeleteOnly()), useless},
		"three replicas":                         {pulling(t, wantsReplicas(3)), useless},
		"four replicas":                          {pulling(t, wantsReplicas(4)), pulled},
		"all pods at once":                       {pulling(t, partition("0"), maxUnavailable("100%")), useless},
		"all pods but those of the partition":    {pulling(t, partition("1"), maxUnavailable("100%")), pulled},
		"maxUnavailable is rounded down":         {pulling(t, partition("0"), maxUnavailable("99%")), pulled},
		"maxUnavailable is a number":             {pulling(t, partition("0"), maxUnavailable("5")), useless},
		"maxUnavailable is absent":               {pulling(t, partition("0"), rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.MaxUnavailable = nil })), pulled},
		"the change is not possible in place":    {pulling(t).changed(ported), useless},
		"known to be useless":                    {pulling(t, recreate).marked(contract.ImagePreDownloadIgnoredLabel), ""},
		"useless before, but not any more":       {pulling(t).marked(contract.ImagePreDownloadIgnoredLabel), pulled},
		"the update has not proved itself":       {pulling(t, atLeastTwo).updated(1).updated(1, unready), ""},
		"the update has proved itself":           {pulling(t, atLeastTwo).updated(2), pulled},
		"the number of pods cannot be computed":  {pulling(t, partition("5")).unreadable(), ""},
		"a failed attempt waits":                 {pulling(t).retryIn(time.Second), ""},
		"and is repeated":                        {pulling(t).retryIn(0), pulled},
		"the kind is not served":                 {pulling(t).notServed(), ""},
		"the kind is not served, nor of any use": {pulling(t, recreate).notServed(), ""},
		"jobs cannot be read":                    {pulling(t).inTrouble(), ""},
		"the rollout has ended":                  {pulling(t).ended().job("a", "").job("b", "older"), "pull:\n" + deletes("a") + deletes("b")},
		"a newer revision is wanted":             {pulling(t).job("a", "older").job("b", ""), "pull:\n" + deletes("a") + pulled},
		"also when its own jobs exist":           {pulling(t).job("a", "older").onlyJob().marked(contract.ImagePreDownloadCreatedLabel), "pull:\n" + deletes("a")},
		"the rollout has ended without jobs":     {pulling(t).ended(), ""},
		"terminating jobs are left":              {pulling(t).ended().leavingJob(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.give.t = t
			assert.Equal(t, tt.want, tt.give.aside())
			steps := tt.give.plan().Steps
			assert.Equal(t, tt.give.withoutPreDownload().plan().Steps, steps, "the rollout is the same")
		})
	}
}

func (w *world) onlyJob() *world            { return w.job(w.revisions[1].Name+"-main", short(w.revisions[1])) }
func (w *world) withoutPreDownload() *world { w.featureGates.PreDownload = false; return w }
func (w *world) unwritten() *world          { w.unsaved = true; return w }
func (w *world) notServed() *world          { w.pulls.Version = ""; return w }
func (w *world) inTrouble() *world          { w.pulls.Problem = "list image pull jobs: forbidden"; return w }
func (w *world) ended() *world              { w.rolled = true; return w }

func (w *world) unreadable() *world {
	partition("many")(w.set)
	return w
}

func (w *world) retryIn(d time.Duration) *world {
	w.pulls.RetryAt = now.Add(d)
	return w
}

func (w *world) leavingJob() *world {
	w.job("a", "").pulls.Owned[0].DeletionTimestamp = &metav1.Time{Time: now}
	return w
}

// The example of the specification, and the whole of a job.
func TestPullJob(t *testing.T) {
	parallelism := intstr.FromInt32(2)
	w := pulling(t, strategy(workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: &parallelism}))
	hash := short(w.revisions[1])
	todo := w.plan()
	require.Len(t, todo.PreDownload.Steps, 2)
	create := todo.PreDownload.Steps[0].Actions[0]
	job := create.Object.(*unstructured.Unstructured).Object
	assert.Equal(t, map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
		"metadata": map[string]any{
			"name": "web-" + hash + "-main", "namespace": "default",
			"labels": map[string]any{"app": "web", "controller.kubernetes.io/hash": hash},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "set-uid",
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{
			"image": "app:2",
			"podSelector": map[string]any{
				"matchLabels": map[string]any{"app": "web"},
				"matchExpressions": []any{map[string]any{
					"key": "controller-revision-hash", "operator": "NotIn", "values": []any{"web-" + hash, hash},
				}},
			},
			"parallelism":      int64(2),
			"pullPolicy":       map[string]any{"timeoutSeconds": int64(300), "backoffLimit": int64(1)},
			"completionPolicy": map[string]any{"type": "Always", "ttlSecondsAfterFinished": int64(600)},
			"sandboxConfig":    map[string]any{"labels": map[string]any{"app": "web", "controller.kubernetes.io/hash": hash}},
		},
	}, job)
	assert.Equal(t, &action.Event{
		Succeeded: "CreatedImagePullJob", Note: "created image pull job web-" + hash + "-main for image app:2", Failed: "FailedCreateImagePullJob",
	}, create.Event)
	assert.Equal(t, map[string]any{"metadata": map[string]any{"labels": map[string]any{
		contract.ImagePreDownloadCreatedLabel: "true", contract.ImagePreDownloadIgnoredLabel: nil,
	}}}, todo.PreDownload.Steps[1].Actions[0].Patches[0].Body)
}

func TestPullJobFollowsTheStrategyAndTheTemplate(t *testing.T) {
	parallelism := intstr.FromString("0")
	w := pulling(t, strategy(workload.InPlaceUpdateStrategy{
		ImagePreDownloadParallelism: &parallelism, ImagePreDownloadTimeoutSeconds: new(int32(60)),
	}))
	for i := range w.revisions {
		template := w.set.Spec.Template.DeepCopy()
		template.Annotations = map[string]string{"team": "shop"}
		template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}}
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "same", Image: "log:1"}, corev1.Container{Name: "side", Image: "proxy:1"})
		template.Spec.Containers[0].Image = fmt.Sprintf("app:%d", i+1)
		template.Spec.Containers[2].Image = fmt.Sprintf("proxy:%d", i+1)
		w.revisions[i] = revisionOf(t, w, *template)
	}
	w.pulls.Version = "v1alpha1"
	jobs := w.plan().PreDownload.Steps[0].Actions
	require.Len(t, jobs, 2, "one for each container whose image differs")
	assert.Equal(t, w.revisions[1].Name+"-side", jobs[1].Object.GetName())
	job := jobs[1].Object.(*unstructured.Unstructured)
	assert.Equal(t, "apps.kruise.io/v1alpha1", job.GetAPIVersion())
	spec := job.Object["spec"].(map[string]any)
	assert.Equal(t, "proxy:2", spec["image"])
	assert.Equal(t, "0", spec["parallelism"], "the job is paused")
	assert.Equal(t, int64(60), spec["pullPolicy"].(map[string]any)["timeoutSeconds"])
	assert.Equal(t, []any{"one", "two"}, spec["pullSecrets"])
	assert.Equal(t, map[string]any{"team": "shop"}, spec["sandboxConfig"].(map[string]any)["annotations"])

	strategy(workload.InPlaceUpdateStrategy{})(w.set)
	spec = w.plan().PreDownload.Steps[0].Actions[0].Object.(*unstructured.Unstructured).Object["spec"].(map[string]any)
	assert.Equal(t, int64(1), spec["parallelism"])
}

func TestPullJobsAreLegalForLongNames(t *testing.T) {
	w := pulling(t)
	for _, length := range []int{63, 64, 200, 240} {
		w.revisions[1].Name = strings.Repeat("w", length-6) + "-abcde"
		job := w.plan().PreDownload.Steps[0].Actions[0].Object.(*unstructured.Unstructured)
		selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exclusionOf(job)}}
		_, err := metav1.LabelSelectorAsSelector(selector)
		require.NoError(t, err)
	}
}

// exclusionOf is the part of a job's selector that leaves out updated pods.
func exclusionOf(job *unstructured.Unstructured) metav1.LabelSelectorRequirement {
	expressions, _, _ := unstructured.NestedSlice(job.Object, "spec", "podSelector", "matchExpressions")
	values, _, _ := unstructured.NestedStringSlice(expressions[0].(map[string]any), "values")
	return metav1.LabelSelectorRequirement{Key: contract.RevisionLabel, Operator: metav1.LabelSelectorOpNotIn, Values: values}
}

func TestUsersAreToldOnceWhyImagesAreNotPulledAhead(t *testing.T) {
	asked := strategy(workload.InPlaceUpdateStrategy{ImagePreDownloadTimeoutSeconds: new(int32(60))})
	missing := []string{"PreDownloadUnavailable: images are not pulled ahead of the update: the cluster does not serve ImagePullJob"}
	for name, tt := range map[string]struct {
		give *world
		want []string
	}{
		"who asks hears that the kind is missing": {pulling(t, asked).notServed(), missing},
		"who does not ask is left in peace":       {pulling(t).notServed(), nil},
		"so is who would gain nothing":            {pulling(t, asked, policy(v1beta1.ReCreate)).notServed(), nil},
		"and who knows":                           {pulling(t, asked).notServed().told(), nil},
		"trouble is told to all":                  {pulling(t).inTrouble(), []string{"FailedCreateImagePullJob: list image pull jobs: forbidden"}},
		"once":                                    {pulling(t).inTrouble().told(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			tt.give.t = t
			todo := tt.give.plan()
			var texts []string
			for _, n := range todo.Notices {
				assert.Equal(t, corev1.EventTypeWarning, n.Type)
				texts = append(texts, n.Reason+": "+n.Note)
			}
			assert.Equal(t, tt.want, texts)
			assert.Equal(t, len(tt.want) > 0, todo.PreDownload.ReportsProblem)
			assert.Empty(t, todo.PreDownload.Steps)
			assert.NotEmpty(t, todo.Steps, "the rollout goes on")
		})
	}
}

func (w *world) told() *world {
	w.pulls.ProblemReported = true
	return w
}

// No event tells that an attempt may be repeated or that the kind has been installed.
func TestPlansWakeForPullJobs(t *testing.T) {
	still := pulling(t, paused())
	assert.Zero(t, still.plan().RequeueAfter)
	assert.Equal(t, 3*time.Second, still.retryIn(3*time.Second).plan().RequeueAfter)
	assert.Equal(t, time.Minute, still.notServed().plan().RequeueAfter)
}

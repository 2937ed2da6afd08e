package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/test/records"
)

func TestWorkloadsAreRolledOut(t *testing.T) {
	given, err := documents(workloads, "here")
	require.NoError(t, err)
	there := map[string]bool{}
	for _, o := range given {
		assert.Equal(t, "here", o.GetNamespace())
		there[o.GetKind()+" "+o.GetName()] = true
	}
	edits, err := documents(rollouts, "here")
	require.NoError(t, err)
	patched := 0
	for _, o := range edits {
		if there[o.GetKind()+" "+o.GetName()] {
			patched++
		}
	}
	assert.Equal(t, 7, patched, "the other ones are created")
	assert.Len(t, edits, 10)
}

func TestFaultsAreChosenByName(t *testing.T) {
	all, err := Choose(nil)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range all {
		assert.False(t, names[f.Name], "%s is there twice", f.Name)
		assert.NotEmpty(t, f.Breaks)
		assert.NotNil(t, f.Inject)
		names[f.Name] = true
	}
	chosen, err := Choose([]string{"etcd", "none"})
	require.NoError(t, err)
	require.Len(t, chosen, 2)
	assert.Equal(t, "none", chosen[0].Name, "in the order of a run")
	_, err = Choose([]string{"ectd"})
	assert.ErrorContains(t, err, `there is no fault "ectd": use one of none, nospace, `)
}

func TestAPodIsReadAsRulesSeeIt(t *testing.T) {
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", Labels: map[string]string{"subset": "some", "app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "n0", Containers: []corev1.Container{{Name: "main", Image: "app:v2"}, {Name: "other", Image: "x"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: contract.InPlaceUpdateReady, Status: corev1.ConditionFalse},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "other", Image: "x", RestartCount: 7},
				{Name: "main", Image: "docker.io/app:v1", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		},
	}
	want := Pod{
		Name: "a", UID: "1", App: "web", Subset: "some", Labels: "app=web,subset=some", Node: "n0", Image: "app:v2", Runs: "app:v1", Gate: "False", Ready: true, Restarts: 2,
	}
	assert.Equal(t, want, podOf(o))
	o.DeletionTimestamp, o.Status.Phase = &metav1.Time{}, corev1.PodFailed
	want.Leaving, want.Over, want.Failed = true, true, true
	assert.Equal(t, want, podOf(o))
}

func TestAJobIsActiveUntilItEnds(t *testing.T) {
	o := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	o.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
	assert.Equal(t, Job{"a", "1", true}, jobOf(o))
	o.Status.Conditions = append(o.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue})
	assert.Equal(t, Job{"a", "1", false}, jobOf(o))
}

func TestGoalsAreReached(t *testing.T) {
	good := Pod{Name: "a", App: "web", Ready: true, Image: "v2", Runs: "v2"}
	goals := []goal{{"web", 1, "v2"}}
	parted := []goal{{"web", 1, "v2"}, {"web", 1, "v1"}}
	behind := with(good, func(p *Pod) { p.Image, p.Runs = "v1", "v1" })
	require.NoError(t, reach([]Pod{good, behind}, parted))
	require.Error(t, reach([]Pod{good, good}, parted))
	require.Error(t, reach([]Pod{good, behind, behind}, parted))
	require.NoError(t, reach([]Pod{good, {App: "other"}, with(good, failed)}, goals))
	for name, p := range map[string][]Pod{
		"none":          nil,
		"unready":       {with(good, func(p *Pod) { p.Ready = false })},
		"leaving":       {with(good, leaving)},
		"one too many":  {good, good},
		"the old image": {with(good, func(p *Pod) { p.Image = "v1" })},
		"yet to start":  {with(good, func(p *Pod) { p.Runs = "v1" })},
	} {
		assert.Error(t, reach(p, goals), name)
	}
}

func TestAnObjectEnds(t *testing.T) {
	ended := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	object := func(kind string, status map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "status": status}}
		o.SetGeneration(2)
		return o
	}
	conditions := func(status string) []any { return []any{map[string]any{"type": "Ready", "status": status}} }
	for name, c := range map[string]struct {
		o    *unstructured.Unstructured
		done bool
	}{
		"a set that is ready":          {object("CloneSet", map[string]any{"observedGeneration": int64(2), "conditions": conditions("True")}), true},
		"a set that is not":            {object("StatefulSet", map[string]any{"observedGeneration": int64(2), "conditions": conditions("False")}), false},
		"a set of the past":            {object("DaemonSet", map[string]any{"observedGeneration": int64(1), "conditions": conditions("True")}), false},
		"a budget":                     {object("PodUnavailableBudget", map[string]any{"observedGeneration": int64(2)}), true},
		"a job that ended":             {object("ImagePullJob", map[string]any{"succeeded": int64(3), "completionTime": "x"}), true},
		"a job that missed a node":     {object("BroadcastJob", map[string]any{"desired": int64(2), "succeeded": int64(2), "completionTime": "x"}), false},
		"a request":                    {object("ContainerRecreateRequest", map[string]any{"phase": "Completed"}), true},
		"a schedule that went on":      {object("AdvancedCronJob", map[string]any{"lastScheduleTime": "2026-01-02T03:04:06Z"}), true},
		"a schedule that has stopped":  {object("AdvancedCronJob", map[string]any{"lastScheduleTime": "2026-01-02T03:04:05Z"}), false},
		"a schedule that never began":  {object("AdvancedCronJob", map[string]any{}), false},
		"a kind without work to do":    {object("Pod", nil), true},
		"a request that is under way":  {object("ContainerRecreateRequest", map[string]any{"phase": "Recreating"}), false},
		"a spread that is not counted": {object("WorkloadSpread", map[string]any{}), false},
	} {
		assert.Equal(t, c.done, ends(c.o, ending{after: ended}) == nil, name)
	}
	lost := ending{closed: map[string]bool{"n1": true}}
	job := func(desired, succeeded int64) *unstructured.Unstructured {
		return object("BroadcastJob", map[string]any{"desired": desired, "succeeded": succeeded, "completionTime": "x"})
	}
	require.NoError(t, ends(job(2, 2), lost), "a node was lost when the job began")
	require.NoError(t, ends(job(3, 3), lost))
	require.Error(t, ends(job(3, 2), lost))
	require.Error(t, ends(job(1, 1), lost))
}

func TestANodeIsClosedWhileItIsNotReady(t *testing.T) {
	node := func(key string, effect corev1.TaintEffect) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}, {Key: key, Effect: effect}}}}
	}
	assert.True(t, isClosed(node(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule)))
	assert.True(t, isClosed(node(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)))
	assert.False(t, isClosed(node(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)), "pods of DaemonSets tolerate it")
	assert.False(t, isClosed(node(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)), "likewise")
}

func TestALimitOfPatienceNamesTheCause(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*pause)
	defer cancel()
	tries := 0
	err := until(ctx, func(ctx context.Context) error {
		if tries++; tries == 1 {
			return errors.New("pod a is not ready")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorContains(t, err, "pod a is not ready")
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestTheTableHasTheVerdicts(t *testing.T) {
	began := at(0)
	run := Record{Commit: "0123456789abcdef", Date: began.UTC(), Machine: records.Machine{Kubernetes: "1.37.2"}, Verdicts: []Verdict{
		{Fault: "etcd", Breaks: "killed", Held: 1.4, Completed: 30, States: 100, Evictions: Evictions{1, 2, 3}},
		{Fault: "network", Breaks: "cut", Excused: []string{"n1"}, Began: began, Lost: "a\nb", Violations: []Violation{{"claims stay", at(1), at(3), "claim x is deleted"}}},
	}}
	assert.Contains(t, run.table(), "\n| etcd | killed |  | 1 s | 30 s | 100 | 1 / 2 / 3 | Resilient |\n"+
		"| network | cut | n1 | 0 s | 0 s | 0 | 0 / 0 / 0 | claims stay from 1.0 s to 3.0 s: claim x is deleted; incomplete: a; b |\n")
	require.EqualError(t, run.Broken(), "1 of 2 faults broke an invariant: network")
	assert.NoError(t, Record{Verdicts: run.Verdicts[:1]}.Broken())
}

func TestTheDocsShowThePublishedRecord(t *testing.T) {
	const root = "../.."
	folder := t.TempDir()
	for _, name := range []string{published, page} {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	require.NoError(t, Publish(folder))
	want, err := os.ReadFile(filepath.Join(folder, page))
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(have), "%s is not of its record: run make generate", page)
}

func TestASubsetIsNotOverfilled(t *testing.T) {
	some := Pod{Subset: "some"}
	require.NoError(t, overfilled([]Pod{some, some, with(some, leaving), with(some, failed), {Subset: "others"}}))
	require.EqualError(t, overfilled([]Pod{some, some, some}), "subset some has 3 pods, at most 2 may be there")
}

func TestInvalidObjectsAreNotTriedAgain(t *testing.T) {
	tries := 0
	err := until(t.Context(), func(context.Context) error {
		if tries++; tries == 1 {
			return apierrors.NewTooManyRequestsError("busy")
		}
		return apierrors.NewInvalid(schema.GroupKind{Kind: "CloneSet"}, "web", nil)
	})
	assert.True(t, apierrors.IsInvalid(err), err)
	assert.Equal(t, 2, tries)
}

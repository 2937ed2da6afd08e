package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull/plan"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: now.Add(time.Duration(seconds) * time.Second)}
}

func id(tag string, version int64) plan.ID {
	return plan.ID{Ref: imageref.Ref{Name: "app", Tag: tag}, Version: version}
}

func wanted(tag string, version int64, change ...func(*v1beta1.ImageTagSpec)) v1beta1.ImageTagSpec {
	t := v1beta1.ImageTagSpec{Tag: tag, Version: version, CreatedAt: at(0)}
	for _, f := range change {
		f(&t)
	}
	return t
}

// image wants tags of the image app.
func image(tags ...v1beta1.ImageTagSpec) *v1beta1.NodeImage {
	return &v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"app": {Tags: tags}}}}
}

func withStatus(i *v1beta1.NodeImage, states ...v1beta1.ImageTagStatus) *v1beta1.NodeImage {
	i.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"app": {Tags: states}}
	return i
}

// compute makes the plan twice and checks that nothing was changed by it.
func compute(t *testing.T, s plan.Snapshot) plan.Plan {
	t.Helper()
	s.Now = now
	before := s.Image.DeepCopy()
	first := plan.Compute(s)
	assert.Equal(t, first, plan.Compute(s), "the same input gives the same plan")
	assert.Equal(t, before, s.Image, "the snapshot is left alone")
	return first
}

func states(p plan.Plan) []v1beta1.ImageTagStatus { return p.Status.ImageStatuses["app"].Tags }

func TestNewTagsBeginAndTheStatusSaysSo(t *testing.T) {
	p := compute(t, plan.Snapshot{Image: image(wanted("2", 1), wanted("1", 7))})
	assert.Equal(t, []plan.ID{id("2", 1), id("1", 7)}, p.Start, "in the order of the spec")
	assert.Equal(t, []v1beta1.ImageTagStatus{
		{Tag: "1", Version: 7, Phase: v1beta1.ImagePulling, StartTime: at(0)},
		{Tag: "2", Version: 1, Phase: v1beta1.ImagePulling, StartTime: at(0)},
	}, states(p), "sorted by tag")
	assert.Equal(t, int32(2), p.Status.Desired)
	assert.Equal(t, int32(2), p.Status.Pulling)
	assert.True(t, p.Unfinished)
	assert.Equal(t, &v1beta1.SyncStatus{Status: v1beta1.SyncSucceeded, SyncAt: *at(0)}, p.Status.FirstSyncStatus)
}

func TestThoseWithoutASlotWaitInTheirOrder(t *testing.T) {
	s := plan.Snapshot{Image: image(wanted("a", 0), wanted("b", 0), wanted("c", 0)), Slots: 2}
	p := compute(t, s)
	assert.Equal(t, []plan.ID{id("a", 0), id("b", 0)}, p.Start)
	assert.Equal(t, v1beta1.ImageTagStatus{Tag: "c", Phase: v1beta1.ImageWaiting}, states(p)[2])
	assert.Equal(t, int32(1), p.Status.Waiting)

	s.Pulls = []plan.Pull{
		{ID: id("a", 0), State: plan.Running, StartTime: at(-5)},
		{ID: id("c", 0), State: plan.Queued},
		{ID: id("b", 0), State: plan.Queued},
	}
	p = compute(t, s)
	assert.Equal(t, []plan.ID{id("c", 0)}, p.Start, "the first that came, whatever its name")
	assert.Equal(t, at(-5), states(p)[0].StartTime)
	assert.Equal(t, at(0), states(p)[2].StartTime, "the wait does not count")
}

func TestAStoppingPullHoldsItsSlot(t *testing.T) {
	s := plan.Snapshot{Image: image(wanted("a", 2)), Slots: 1, Pulls: []plan.Pull{{ID: id("a", 1), State: plan.Stopping}}}
	assert.Empty(t, compute(t, s).Start)
	s.Pulls = nil
	assert.Equal(t, []plan.ID{id("a", 2)}, compute(t, s).Start)
}

func TestPullsOfOtherVersionsAndGoneTagsEnd(t *testing.T) {
	p := compute(t, plan.Snapshot{
		Image: image(wanted("a", 2)),
		Pulls: []plan.Pull{
			{ID: id("a", 1), State: plan.Running}, {ID: id("b", 1), State: plan.Running},
			{ID: id("c", 1), State: plan.Queued}, {ID: id("d", 1), State: plan.Ended, Result: plan.Result{At: *at(-1)}},
			{ID: id("e", 1), State: plan.Stopping},
		},
	})
	assert.Equal(t, []plan.ID{id("a", 1), id("b", 1)}, p.Stop)
	assert.Equal(t, []plan.ID{id("c", 1), id("d", 1)}, p.Drop)
	assert.Empty(t, p.Ended, "a late result is dropped")
	assert.Equal(t, []plan.ID{id("a", 2)}, p.Start)
}

func TestResultsAreWrittenAndToldOnce(t *testing.T) {
	owner := corev1.ObjectReference{Kind: "ImagePullJob", Namespace: "shop", Name: "warm"}
	s := plan.Snapshot{
		Image: image(wanted("bad", 1, func(t *v1beta1.ImageTagSpec) { t.OwnerReferences = []corev1.ObjectReference{owner} }), wanted("good", 1)),
		Pulls: []plan.Pull{
			{ID: id("bad", 1), State: plan.Ended, StartTime: at(-9), Result: plan.Result{At: *at(-1), Failure: "not found"}},
			{ID: id("good", 1), State: plan.Ended, StartTime: at(-9), Result: plan.Result{At: *at(-2), ImageID: "app@sha256:1"}},
		},
	}
	p := compute(t, s)
	assert.Equal(t, []v1beta1.ImageTagStatus{
		{Tag: "bad", Version: 1, Phase: v1beta1.ImageFailed, StartTime: at(-9), CompletionTime: at(-1), Message: "not found"},
		{Tag: "good", Version: 1, Phase: v1beta1.ImageSucceeded, Progress: 100, StartTime: at(-9), CompletionTime: at(-2), ImageID: "app@sha256:1"},
	}, states(p))
	require.Len(t, p.Ended, 2)
	assert.Equal(t, []corev1.ObjectReference{owner}, p.Ended[0].Owners)
	assert.Equal(t, 8*time.Second, p.Ended[0].Took)
	assert.Empty(t, p.Start)

	s.Image.Status = *p.Status
	p = compute(t, s)
	assert.Equal(t, s.Image.Status, *p.Status)
	assert.Empty(t, p.Ended)
	assert.Equal(t, []plan.ID{id("bad", 1), id("good", 1)}, p.Drop)
	assert.False(t, p.Unfinished)
}

func TestWhatTheManagerGaveUpStaysFailed(t *testing.T) {
	failed := v1beta1.ImageTagStatus{Tag: "a", Version: 3, Phase: v1beta1.ImageFailed, CompletionTime: at(-1), Message: "node has not responded for a long time"}
	for _, state := range []plan.State{plan.Running, plan.Ended} {
		p := compute(t, plan.Snapshot{
			Image: withStatus(image(wanted("a", 3)), failed),
			Pulls: []plan.Pull{{ID: id("a", 3), State: state, StartTime: at(-5), Result: plan.Result{At: *at(0), ImageID: "app@1"}}},
		})
		assert.Equal(t, []v1beta1.ImageTagStatus{failed}, states(p))
		assert.Len(t, append(p.Stop, p.Drop...), 1)
		assert.Empty(t, p.Ended)
	}
}

func TestARestartedAgentGoesOn(t *testing.T) {
	done := v1beta1.ImageTagStatus{Tag: "a", Version: 1, Phase: v1beta1.ImageSucceeded, Progress: 100, CompletionTime: at(-60)}
	p := compute(t, plan.Snapshot{Image: withStatus(image(wanted("a", 1), wanted("b", 1), wanted("c", 2)), done,
		v1beta1.ImageTagStatus{Tag: "b", Version: 1, Phase: v1beta1.ImagePulling, StartTime: at(-30)},
		v1beta1.ImageTagStatus{Tag: "c", Version: 1, Phase: v1beta1.ImageSucceeded, StartTime: at(-30), CompletionTime: at(-20)},
		v1beta1.ImageTagStatus{Tag: "gone", Version: 1, Phase: v1beta1.ImageFailed, CompletionTime: at(-20)},
	)})
	assert.Equal(t, []plan.ID{id("b", 1), id("c", 2)}, p.Start)
	assert.Equal(t, []v1beta1.ImageTagStatus{
		done,
		{Tag: "b", Version: 1, Phase: v1beta1.ImagePulling, StartTime: at(-30)},
		{Tag: "c", Version: 2, Phase: v1beta1.ImagePulling, StartTime: at(0)},
	}, states(p), "the start is kept so that the deadline is, and states without a tag go")
}

// A restarted agent has no memory: the order of its queue comes from the NodeImage.
func TestARestartedAgentKeepsTheOrder(t *testing.T) {
	type tag struct {
		name, namespace string
		added           int
		began           *metav1.Time
	}
	for name, tt := range map[string]struct {
		tags []tag
		want []string
	}{
		"a pull that began goes on, and keeps its start": {
			[]tag{{"a", "shop", -60, nil}, {"z", "shop", -540, at(-530)}}, []string{"z"},
		},
		"whoever waits for longer":          {[]tag{{"a", "shop", -600, nil}, {"z", "shop", -60, at(-50)}}, []string{"z"}},
		"whatever namespaces have":          {[]tag{{"a", "other", -60, nil}, {"y", "shop", -50, at(-40)}, {"z", "shop", -540, at(-530)}}, []string{"z", "y"}},
		"the first to begin is first":       {[]tag{{"a", "shop", -60, at(-10)}, {"z", "shop", -60, at(-20)}}, []string{"z"}},
		"none began: the one added first":   {[]tag{{"a", "shop", -60, nil}, {"z", "shop", -540, nil}}, []string{"z"}},
		"added at once: as they are listed": {[]tag{{"z", "shop", -60, nil}, {"a", "shop", -60, nil}}, []string{"z"}},
	} {
		t.Run(name, func(t *testing.T) {
			var tags []v1beta1.ImageTagSpec
			var before []v1beta1.ImageTagStatus
			for _, one := range tt.tags {
				spec := wanted(one.name, 1)
				spec.CreatedAt, spec.OwnerReferences = at(one.added), []corev1.ObjectReference{{Namespace: one.namespace}}
				tags = append(tags, spec)
				state := v1beta1.ImageTagStatus{Tag: one.name, Version: 1, Phase: v1beta1.ImageWaiting}
				if one.began != nil {
					state.Phase, state.StartTime = v1beta1.ImagePulling, one.began
				}
				before = append(before, state)
			}
			p := compute(t, plan.Snapshot{Image: withStatus(image(tags...), before...), Slots: len(tt.want)})
			var got []string
			for _, started := range p.Start {
				got = append(got, started.Tag)
			}
			assert.Equal(t, tt.want, got)
			for i, state := range states(p) {
				if began := before[i].StartTime; began != nil && slices.Contains(tt.want, state.Tag) {
					assert.Equal(t, began, state.StartTime)
				}
			}
		})
	}
}

func TestNothingBeginsWithoutARuntime(t *testing.T) {
	s := plan.Snapshot{Image: image(wanted("a", 1)), NoRuntime: "no container runtime found, tried /x"}
	p := compute(t, s)
	assert.Empty(t, p.Start)
	assert.Equal(t, v1beta1.ImageTagStatus{Tag: "a", Version: 1, Phase: v1beta1.ImageWaiting, Message: s.NoRuntime}, states(p)[0])
	assert.Equal(t, &v1beta1.SyncStatus{Status: v1beta1.SyncFailed, SyncAt: *at(0), Message: s.NoRuntime}, p.Status.FirstSyncStatus)

	s.Image.Status.FirstSyncStatus = &v1beta1.SyncStatus{Status: v1beta1.SyncFailed, SyncAt: *at(-50), Message: s.NoRuntime}
	assert.Equal(t, *at(-50), compute(t, s).Status.FirstSyncStatus.SyncAt)
	s.NoRuntime = ""
	p = compute(t, s)
	assert.Equal(t, v1beta1.SyncStatus{Status: v1beta1.SyncSucceeded, SyncAt: *at(0)}, *p.Status.FirstSyncStatus)
	assert.Empty(t, states(p)[0].Message)
}

// What a node under pressure pulls has the kubelet evict pods. Pulls under way go on: what they have pulled is on the disk.
func TestNothingBeginsUnderDiskPressure(t *testing.T) {
	s := plan.Snapshot{Image: image(wanted("a", 1), wanted("b", 1)), Pulls: []plan.Pull{{ID: id("b", 1), State: plan.Running, StartTime: at(-9)}}}
	s.Image.Annotations = map[string]string{"apps.kruise.io/disk-pressure": "true"}
	p := compute(t, s)
	assert.Empty(t, p.Start)
	assert.Empty(t, p.Stop)
	assert.Equal(t, []v1beta1.ImageTagStatus{
		{Tag: "a", Version: 1, Phase: v1beta1.ImageWaiting, Message: "the node has condition DiskPressure: pulls begin when it has space"},
		{Tag: "b", Version: 1, Phase: v1beta1.ImagePulling, StartTime: at(-9)},
	}, states(p))
	assert.Equal(t, v1beta1.SyncSucceeded, p.Status.FirstSyncStatus.Status, "the agent works")

	s.Image.Annotations = nil
	assert.Equal(t, []plan.ID{id("a", 1)}, compute(t, s).Start)
}

func TestOrdersFollowThePullPolicy(t *testing.T) {
	cases := []struct {
		name     string
		policy   *v1beta1.ImageTagPullPolicy
		timeout  time.Duration
		attempts int
		deadline time.Duration
	}{
		{"none, written without webhook", nil, 10 * time.Minute, 4, 0},
		{"empty", &v1beta1.ImageTagPullPolicy{}, 10 * time.Minute, 4, 0},
		{"all", &v1beta1.ImageTagPullPolicy{TimeoutSeconds: new(int32(5)), BackoffLimit: new(int32(1)), ActiveDeadlineSeconds: new(int64(7))}, 5 * time.Second, 2, 7 * time.Second},
		{"no retry", &v1beta1.ImageTagPullPolicy{BackoffLimit: new(int32(0))}, 10 * time.Minute, 1, 0},
		{"negative", &v1beta1.ImageTagPullPolicy{TimeoutSeconds: new(int32(-1)), BackoffLimit: new(int32(-1)), ActiveDeadlineSeconds: new(int64(-1))}, 10 * time.Minute, 4, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := compute(t, plan.Snapshot{Image: image(wanted("a", 1, func(t *v1beta1.ImageTagSpec) { t.PullPolicy = c.policy }))})
			require.Len(t, p.Requests, 1)
			o := p.Requests[0]
			assert.Equal(t, []any{c.timeout, c.attempts, c.deadline, false}, []any{o.Timeout, o.Attempts, o.Deadline, o.Always})
		})
	}
	p := compute(t, plan.Snapshot{Image: image(wanted("a", 1, func(t *v1beta1.ImageTagSpec) { t.ImagePullPolicy = v1beta1.PullAlways }))})
	assert.True(t, p.Requests[0].Always)
}

func TestWithoutNodeImageAllEnds(t *testing.T) {
	pulls := []plan.Pull{{ID: id("a", 1), State: plan.Running}, {ID: id("b", 1), State: plan.Queued}}
	p := plan.Compute(plan.Snapshot{Pulls: pulls, Now: now})
	assert.Equal(t, plan.Plan{Stop: []plan.ID{id("a", 1)}, Drop: []plan.ID{id("b", 1)}}, p)

	leaving := image(wanted("a", 1), wanted("b", 1))
	leaving.DeletionTimestamp = at(0)
	p = compute(t, plan.Snapshot{Image: leaving, Pulls: pulls})
	assert.Equal(t, []plan.ID{id("a", 1)}, p.Stop)
	assert.Empty(t, p.Start)
}

// A namespace has a second slot once every other one that waits has one, whoever came first.
func TestSlotsAreSharedAmongNamespaces(t *testing.T) {
	of := func(namespace string) func(*v1beta1.ImageTagSpec) {
		return func(t *v1beta1.ImageTagSpec) { t.OwnerReferences = []corev1.ObjectReference{{Namespace: namespace}} }
	}
	i := image(wanted("a1", 0, of("a")), wanted("a2", 0, of("a")), wanted("a3", 0, of("a")), wanted("b1", 0, of("b")), wanted("none", 0))
	assert.Equal(t, []plan.ID{id("a1", 0), id("b1", 0), id("none", 0)}, compute(t, plan.Snapshot{Image: i, Slots: 3}).Start)
	s := plan.Snapshot{Image: i, Slots: 2, Pulls: []plan.Pull{{ID: id("a1", 0), State: plan.Running}}}
	assert.Equal(t, []plan.ID{id("b1", 0)}, compute(t, s).Start)
	s.Pulls, s.Slots = append(s.Pulls, plan.Pull{ID: id("b1", 0), State: plan.Running}, plan.Pull{ID: id("none", 0), State: plan.Running}), 4
	assert.Equal(t, []plan.ID{id("a2", 0)}, compute(t, s).Start)
}

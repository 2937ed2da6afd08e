package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/plan/action"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

var now = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

const config = "kruise-daemon-config"

func job(changes ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	j := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "warm", UID: "job", ResourceVersion: "1", Generation: 3}}
	j.Spec.Image = "nginx:1.25"
	j.Status.StartTime = new(metav1.NewTime(now.Add(-time.Minute)))
	for _, change := range changes {
		change(j)
	}
	return j
}

func parallelism(n int) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = new(intstr.FromInt(n)) }
}

func policy(p v1beta1.CompletionPolicy) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy = p }
}

func ended(ago time.Duration) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = new(metav1.NewTime(now.Add(-ago))) }
}

func protected(j *v1beta1.ImagePullJob) {
	j.Finalizers = []string{"other", v1beta1.ProtectionFinalizer}
}

// image returns the NodeImage of a node without any tag.
func image(name string) *nodeimage.NodeImage {
	return &nodeimage.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"}}
}

// written returns the NodeImage after the writes of the plan.
func written(t *testing.T, p *Plan, before *nodeimage.NodeImage) *nodeimage.NodeImage {
	t.Helper()
	after := before
	for _, step := range p.Steps {
		for i := range step.Actions {
			if a := &step.Actions[i]; a.Object.GetUID() == before.UID {
				after = apply(t, a, after)
			}
		}
	}
	return after
}

func apply(t testing.TB, a *action.Action, before *nodeimage.NodeImage) *nodeimage.NodeImage {
	t.Helper()
	require.Len(t, a.Patches, 1)
	patch, err := json.Marshal(a.Patches[0].Body)
	require.NoError(t, err)
	raw, err := json.Marshal(before)
	require.NoError(t, err)
	merged, err := jsonpatch.MergePatch(raw, patch)
	require.NoError(t, err)
	require.NotEqual(t, string(raw), string(merged), "a write without an effect")
	after := &nodeimage.NodeImage{}
	require.NoError(t, json.Unmarshal(merged, after))
	return after
}

// pulled returns the NodeImage after the job has asked for its image there, with the agent's answer if one is given.
func pulled(t *testing.T, name string, j *v1beta1.ImagePullJob, phase nodeimage.ImagePullPhase) *nodeimage.NodeImage {
	t.Helper()
	j = j.DeepCopy()
	j.Spec.Parallelism = new(intstr.FromInt(1))
	j.Status.StartTime = nil
	p := Compute(Snapshot{Job: j, Targets: []*nodeimage.NodeImage{image(name)}, Now: now})
	after := written(t, &p, image(name))
	if phase != "" {
		answer(after, phase)
	}
	return after
}

func answer(o *nodeimage.NodeImage, phase nodeimage.ImagePullPhase) {
	o.Status.ImageStatuses = map[string]nodeimage.ImageStatus{}
	for name, spec := range o.Spec.Images {
		var tags []nodeimage.ImageTagStatus
		for _, tag := range spec.Tags {
			tags = append(tags, nodeimage.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: phase, Message: "said by " + o.Name})
		}
		o.Status.ImageStatuses[name] = nodeimage.ImageStatus{Tags: tags}
	}
}

func TestJobsArePulledInOrderAndWithinParallelism(t *testing.T) {
	ok, bad, busy := nodeimage.ImageSucceeded, nodeimage.ImageFailed, nodeimage.ImagePulling
	for name, test := range map[string]struct {
		job     *v1beta1.ImagePullJob
		nodes   []nodeimage.ImagePullPhase // "" for one that was not asked
		begin   string
		status  string
		message string
	}{
		"the first node begins":        {job(), []nodeimage.ImagePullPhase{"", "", ""}, "n0", "3/0/0/0", "job is running, progress 0.0%"},
		"one at a time":                {job(), []nodeimage.ImagePullPhase{busy, "", ""}, "", "3/1/0/0", "job is running, progress 0.0%"},
		"the next one follows":         {job(), []nodeimage.ImagePullPhase{ok, "", ""}, "n1", "3/0/1/0", "job is running, progress 33.3%"},
		"a failed one frees its place": {job(), []nodeimage.ImagePullPhase{ok, bad, ""}, "n2", "3/0/1/1", "job is running, progress 66.7%"},
		"two at a time":                {job(parallelism(2)), []nodeimage.ImagePullPhase{busy, "", ""}, "n1", "3/1/0/0", "job is running, progress 0.0%"},
		"none":                         {job(parallelism(0)), []nodeimage.ImagePullPhase{"", ""}, "", "2/0/0/0", "job is running, progress 0.0%"},
		"more than there are":          {job(parallelism(9)), []nodeimage.ImagePullPhase{"", ""}, "n0 n1", "2/0/0/0", "job is running, progress 0.0%"},
		"all have ended":               {job(), []nodeimage.ImagePullPhase{ok, bad}, "", "2/0/1/1", MessageCompleted},
		"nothing to do":                {job(), nil, "", "0/0/0/0", MessageCompleted},
		"a job that never completes":   {job(policy(v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever})), []nodeimage.ImagePullPhase{ok}, "", "1/0/1/0", "job is running, progress 100.0%"},
		"it waits for nodes":           {job(policy(v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever})), nil, "", "0/0/0/0", MessageNoProgress},
		"the deadline ends a job":      {job(policy(v1beta1.CompletionPolicy{ActiveDeadlineSeconds: new(int64(60))})), []nodeimage.ImagePullPhase{ok, busy, ""}, "", "3/0/1/2", MessageDeadline},
		"parallelism as text":          {job(func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = new(intstr.FromString("2")) }), []nodeimage.ImagePullPhase{"", "", ""}, "n0 n1", "3/0/0/0", "job is running, progress 0.0%"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Job: test.job, Now: now}
			for i, phase := range test.nodes {
				o := image(fmt.Sprintf("n%d", i))
				if phase != "" {
					o = pulled(t, o.Name, test.job, phase)
				}
				s.Targets = append(s.Targets, o)
			}
			p := compute(t, s)
			var begun []string
			for _, step := range p.Steps {
				for i := range step.Actions {
					begun = append(begun, step.Actions[i].Object.GetName())
				}
			}
			assert.Equal(t, test.begin, strings.Join(begun, " "))
			st := p.status
			assert.Equal(t, test.status, fmt.Sprintf("%d/%d/%d/%d", st.Desired, st.Active, st.Succeeded, st.Failed))
			assert.Equal(t, test.message, st.Message)
			assert.Equal(t, test.message == MessageCompleted || test.message == MessageDeadline, st.CompletionTime != nil)
			assert.Len(t, st.FailedNodes, int(st.Failed))
		})
	}
}

// compute computes twice, and checks that nothing was changed.
func compute(t *testing.T, s Snapshot) Plan {
	t.Helper()
	before, err := json.Marshal(s.Targets)
	require.NoError(t, err)
	first, again := Compute(s), Compute(s)
	assert.Equal(t, first.String(), again.String())
	assert.Equal(t, first.status, again.status)
	after, err := json.Marshal(s.Targets)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
	return first
}

func TestEntriesSayHowToPull(t *testing.T) {
	j := job(func(j *v1beta1.ImagePullJob) {
		j.Spec.Image = "reg.io/a/b:v1@sha256:" + strings.Repeat("0", 64)
		j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(60)), BackoffLimit: new(int32(1))}
		j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"a": "b"}}
		j.Spec.ImagePullPolicy = v1beta1.PullAlways
	})
	before := image("n0")
	before.Status.ImageStatuses = map[string]nodeimage.ImageStatus{"reg.io/a/b": {Tags: []nodeimage.ImageTagStatus{{Tag: "sha256:" + strings.Repeat("0", 64), Version: 4}}}}
	p := compute(t, Snapshot{Job: j, Targets: []*nodeimage.NodeImage{before}, TTL: 300 * time.Second, Now: now})
	spec := written(t, &p, before).Spec.Images["reg.io/a/b"]
	require.Len(t, spec.Tags, 1)
	tag := spec.Tags[0]
	assert.Equal(t, "sha256:"+strings.Repeat("0", 64), tag.Tag)
	assert.EqualValues(t, 5, tag.Version, "an old result must not count")
	assert.Equal(t, nodeimage.PullAlways, tag.ImagePullPolicy)
	assert.EqualValues(t, 60, *tag.PullPolicy.TimeoutSeconds)
	assert.EqualValues(t, 1, *tag.PullPolicy.BackoffLimit)
	assert.EqualValues(t, 2*60+30+600, *tag.PullPolicy.ActiveDeadlineSeconds, "all attempts, their pauses, and a turn to wait for")
	assert.GreaterOrEqual(t, *tag.PullPolicy.TTLSecondsAfterFinished, int32(360))
	assert.Less(t, *tag.PullPolicy.TTLSecondsAfterFinished, int32(660))
	assert.Equal(t, &nodeimage.SandboxConfig{Labels: map[string]string{"a": "b"}}, spec.SandboxConfig)
	assert.Equal(t, []corev1.ObjectReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: "default", Name: "warm", UID: "job"}}, tag.OwnerReferences)
	assert.True(t, tag.CreatedAt.Time.Equal(now))
}

func TestTagsStayUntilTheLastNodeHasPulled(t *testing.T) {
	var nodes []*nodeimage.NodeImage
	for i := range 11 {
		nodes = append(nodes, image(fmt.Sprintf("n%d", i)))
	}
	for name, test := range map[string]struct {
		job *v1beta1.ImagePullJob
		min int32
	}{
		"timeout and attempts":      {job(parallelism(11)), 1800 + 300},
		"one after the other":       {job(), 1800 + 300 + 10*600},
		"five at a time":            {job(parallelism(5)), 1800 + 300 + 2*600},
		"a job with a time to live": {job(parallelism(11), policy(v1beta1.CompletionPolicy{TTLSecondsAfterFinished: new(int32(60))})), 60 + 300},
		"a job with a deadline":     {job(parallelism(11), policy(v1beta1.CompletionPolicy{ActiveDeadlineSeconds: new(int64(1200))})), 1200 + 300},
		"a job without an end":      {job(parallelism(11), policy(v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever})), 86400 - 600},
	} {
		t.Run(name, func(t *testing.T) {
			p := compute(t, Snapshot{Job: test.job, Targets: nodes, TTL: 300 * time.Second, Now: now})
			ttl := *written(t, &p, nodes[0]).Spec.Images["nginx"].Tags[0].PullPolicy.TTLSecondsAfterFinished
			assert.GreaterOrEqual(t, ttl, test.min)
			assert.Less(t, ttl, test.min+1200)
		})
	}
}

func TestAChangedJobReachesNodesThatArePulling(t *testing.T) {
	before := job()
	after := before.DeepCopy()
	after.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(30))}
	after.Spec.SandboxConfig = &v1beta1.SandboxConfig{Annotations: map[string]string{"a": "b"}}
	for phase, version := range map[nodeimage.ImagePullPhase]int64{nodeimage.ImagePulling: 1, nodeimage.ImageWaiting: 1, nodeimage.ImageSucceeded: 0, nodeimage.ImageFailed: 0} {
		node := pulled(t, "n0", before, phase)
		p := compute(t, Snapshot{Job: after, Targets: []*nodeimage.NodeImage{node}, Now: now})
		spec := written(t, &p, node).Spec.Images["nginx"]
		assert.Equal(t, version, spec.Tags[0].Version, phase)
		if version > 0 {
			assert.EqualValues(t, 30, *spec.Tags[0].PullPolicy.TimeoutSeconds)
			assert.Equal(t, "b", spec.SandboxConfig.Annotations["a"])
			answered := written(t, &p, node)
			p = compute(t, Snapshot{Job: after, Targets: []*nodeimage.NodeImage{answered}, Now: now})
			assert.True(t, p.Empty(), "once")
		}
	}
}

func TestAnotherImageLeavesNothingBehind(t *testing.T) {
	before := job()
	after := before.DeepCopy()
	after.Spec.Image = "redis"
	node, elsewhere := pulled(t, "n0", before, nodeimage.ImagePulling), pulled(t, "n1", before, nodeimage.ImageSucceeded)
	p := compute(t, Snapshot{Job: after, Targets: []*nodeimage.NodeImage{node}, Owned: []*nodeimage.NodeImage{node, elsewhere}, Now: now})
	assert.Contains(t, written(t, &p, node).Spec.Images, "redis")
	assert.NotContains(t, written(t, &p, node).Spec.Images, "nginx")
	assert.Empty(t, written(t, &p, elsewhere).Spec.Images)
}

func TestTwoJobsShareATag(t *testing.T) {
	other := job(func(j *v1beta1.ImagePullJob) {
		j.Name, j.UID = "other", "other"
		j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(900)), BackoffLimit: new(int32(1))}
	})
	node := pulled(t, "n0", other, nodeimage.ImageSucceeded)
	p := compute(t, Snapshot{Job: job(), Targets: []*nodeimage.NodeImage{node}, Now: now})
	shared := written(t, &p, node)
	tag := shared.Spec.Images["nginx"].Tags[0]
	assert.EqualValues(t, 1, tag.Version)
	assert.Len(t, tag.OwnerReferences, 2)
	assert.EqualValues(t, 900, *tag.PullPolicy.TimeoutSeconds)
	assert.EqualValues(t, 3, *tag.PullPolicy.BackoffLimit)
	for _, j := range []*v1beta1.ImagePullJob{job(), other} {
		p = compute(t, Snapshot{Job: j, Targets: []*nodeimage.NodeImage{shared}, Now: now})
		assert.True(t, p.Empty(), "they agree")
		assert.EqualValues(t, 1, p.status.Active)
	}
	p = compute(t, Snapshot{Job: job(), Owned: []*nodeimage.NodeImage{shared}, Now: now})
	assert.True(t, p.Empty(), "a job that has completed leaves its tags to their time to live")
	never := job(policy(v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever}))
	p = compute(t, Snapshot{Job: never, Owned: []*nodeimage.NodeImage{shared}, Now: now})
	assert.Len(t, written(t, &p, shared).Spec.Images["nginx"].Tags[0].OwnerReferences, 1)
}

func TestAFullNodeIsPassedOver(t *testing.T) {
	full := image("n0")
	full.Spec.Images = map[string]nodeimage.ImageSpec{}
	for i := range nodeimage.MaxImagesPerNode {
		full.Spec.Images[fmt.Sprintf("image%d", i)] = nodeimage.ImageSpec{Tags: []nodeimage.ImageTagSpec{{Tag: "1"}}}
	}
	p := compute(t, Snapshot{Job: job(), Targets: []*nodeimage.NodeImage{full, image("n1")}, Now: now})
	assert.Equal(t, 1, p.Count(action.PatchSpec))
	assert.Contains(t, p.status.Message, "1 nodes have the maximum number of images, tags or pull secrets")

	full.Spec.Images = map[string]nodeimage.ImageSpec{"nginx": {}}
	entry := nodeimage.ImageSpec{}
	for i := range nodeimage.MaxTagsPerImage {
		entry.Tags = append(entry.Tags, nodeimage.ImageTagSpec{Tag: fmt.Sprint("other", i)})
	}
	full.Spec.Images["nginx"] = entry
	p = compute(t, Snapshot{Job: job(), Targets: []*nodeimage.NodeImage{full, image("n1")}, Now: now})
	assert.Equal(t, 1, p.Count(action.PatchSpec))
	assert.Contains(t, p.status.Message, "1 nodes have the maximum number of images, tags or pull secrets")
}

func TestCompletedJobsGoInTime(t *testing.T) {
	ttl := policy(v1beta1.CompletionPolicy{TTLSecondsAfterFinished: new(int32(20))})
	p := Compute(Snapshot{Job: job(ttl, ended(19*time.Second)), Now: now})
	assert.Equal(t, "wake after 1s\n", p.String())
	p = Compute(Snapshot{Job: job(ttl, ended(20*time.Second)), Now: now})
	assert.Equal(t, "expire:\n  Delete imagepulljob warm (Expired): ttlSecondsAfterFinished have passed\n", p.String())
	p = Compute(Snapshot{Job: job(ended(time.Hour)), Now: now})
	assert.Empty(t, p.String())
}

func TestAnAbsentKindIsTold(t *testing.T) {
	j := job()
	p := Waiting(j, now, nil, NotInstalled)
	assert.Equal(t, "no image is pulled: the cluster does not serve NodeImages in v1beta1; install feature daemon", p.status.Message,
		"OpenKruise may have installed the kind, in another version")
	assert.Nil(t, p.status.CompletionTime)
	assert.Len(t, p.Notices, 1)
	j.Status = *p.status
	p = Waiting(j, now, nil, NotInstalled)
	assert.Empty(t, p.Notices, "once")
}

// An edit of a job that has completed changes nothing, and is seen.
func TestAnEditAfterTheEndIsSeen(t *testing.T) {
	j := job(ended(time.Minute), func(j *v1beta1.ImagePullJob) { j.Generation, j.Status.ObservedGeneration = 2, 1 })
	want := j.Status.DeepCopy()
	want.ObservedGeneration = 2
	for name, p := range map[string]Plan{"it runs": Compute(Snapshot{Job: j, Now: now}), "it waits": Waiting(j, now, nil, NotInstalled)} {
		assert.Empty(t, p.Steps, name)
		assert.Equal(t, want, p.status, name)
	}
}

// A pull that others have asked for goes on when a job asks for the same, and begins anew for one that wants more.
func TestAPullUnderWayIsJoined(t *testing.T) {
	named := func(change func(*v1beta1.ImagePullJobSpec)) *v1beta1.ImagePullJob {
		return job(func(j *v1beta1.ImagePullJob) {
			j.Name, j.UID = "other", "other"
			change(&j.Spec)
		})
	}
	limits := func(timeout, backoff int32) func(*v1beta1.ImagePullJobSpec) {
		return func(s *v1beta1.ImagePullJobSpec) {
			s.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &backoff}
		}
	}
	for name, c := range map[string]struct {
		job     *v1beta1.ImagePullJob
		phase   nodeimage.ImagePullPhase
		secrets Secrets
		version int64
	}{
		"the same":                     {named(func(*v1beta1.ImagePullJobSpec) {}), nodeimage.ImagePulling, Secrets{}, 0},
		"before it begins":             {named(func(*v1beta1.ImagePullJobSpec) {}), nodeimage.ImageWaiting, Secrets{}, 0},
		"with less time":               {named(limits(60, 1)), nodeimage.ImagePulling, Secrets{}, 0},
		"with more time":               {named(limits(900, 3)), nodeimage.ImagePulling, Secrets{}, 1},
		"after its end":                {named(func(*v1beta1.ImagePullJobSpec) {}), nodeimage.ImageSucceeded, Secrets{}, 1},
		"after its failure":            {named(func(*v1beta1.ImagePullJobSpec) {}), nodeimage.ImageFailed, Secrets{}, 1},
		"from the registry every time": {named(func(s *v1beta1.ImagePullJobSpec) { s.ImagePullPolicy = v1beta1.PullAlways }), nodeimage.ImagePulling, Secrets{}, 1},
		"in another sandbox": {named(func(s *v1beta1.ImagePullJobSpec) {
			s.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"a": "b"}}
		}), nodeimage.ImagePulling, Secrets{}, 1},
		"with a secret": {named(func(s *v1beta1.ImagePullJobSpec) { s.PullSecrets = []string{"registry"} }), nodeimage.ImagePulling, Secrets{Namespace: "default"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := pulled(t, "n0", job(), c.phase)
			p := compute(t, Snapshot{Job: c.job, Targets: []*nodeimage.NodeImage{before}, Secrets: c.secrets, TTL: 300 * time.Second, Now: now.Add(time.Minute)})
			tag := written(t, &p, before).Spec.Images["nginx"].Tags[0]
			assert.Equal(t, c.version, tag.Version)
			assert.Equal(t, c.version == 0, tag.CreatedAt.Equal(before.Spec.Images["nginx"].Tags[0].CreatedAt))
			assert.Len(t, tag.OwnerReferences, 2)
			p = compute(t, Snapshot{Job: c.job, Targets: []*nodeimage.NodeImage{written(t, &p, before)}, Secrets: c.secrets, Now: now.Add(time.Minute)})
			assert.Empty(t, p.Steps, "once")
			assert.EqualValues(t, 1, p.status.Active)
		})
	}
}

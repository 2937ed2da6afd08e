package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

var (
	now = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	job = types.NamespacedName{Namespace: "default", Name: "warm"}
)

const delay = 30 * time.Second

func node(changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid", Labels: map[string]string{"zone": "a"}}}
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-delay)),
	}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func going(n *corev1.Node) { n.DeletionTimestamp = new(metav1.NewTime(now)) }

func readyFor(d time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-d)) }
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

func pressed(n *corev1.Node) {
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
}

func toldPressed(o *v1beta1.NodeImage) {
	o.Annotations = map[string]string{"apps.kruise.io/disk-pressure": "true"}
}

func virtual(n *corev1.Node) { n.Labels[v1beta1.NodeTypeLabel] = v1beta1.VirtualKubelet }

// nodeImage returns the NodeImage of the node, with nothing to do about it.
func nodeImage(changes ...func(*v1beta1.NodeImage)) *v1beta1.NodeImage {
	o := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", UID: "image-uid", ResourceVersion: "7", Labels: map[string]string{"zone": "a"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "node-uid"}},
	}}
	for _, change := range changes {
		change(o)
	}
	return o
}

func fake(o *v1beta1.NodeImage) { o.Labels[v1beta1.FakeNodeImageLabel] = "true" }

// tag returns a tag of nginx that was asked for just now and stays for ten minutes after its pull.
func tag(name string, changes ...func(*v1beta1.ImageTagSpec)) v1beta1.ImageTagSpec {
	t := v1beta1.ImageTagSpec{
		Tag: name, CreatedAt: new(metav1.NewTime(now)),
		PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(600))},
	}
	for _, change := range changes {
		change(&t)
	}
	return t
}

func asked(ago time.Duration) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.CreatedAt = new(metav1.NewTime(now.Add(-ago))) }
}

func version(v int64) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.Version = v }
}

func deadline(seconds int64) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.PullPolicy.ActiveDeadlineSeconds = &seconds }
}

func owned(refs ...corev1.ObjectReference) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.OwnerReferences = refs }
}

func byJob(version string, uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "apps.kruise.io/" + version, Kind: "ImagePullJob", Namespace: job.Namespace, Name: job.Name, UID: uid}
}

func wants(tags ...v1beta1.ImageTagSpec) func(*v1beta1.NodeImage) {
	return func(o *v1beta1.NodeImage) { o.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {Tags: tags}} }
}

func secrets(refs ...v1beta1.SecretReference) func(*v1beta1.NodeImage) {
	return func(o *v1beta1.NodeImage) {
		nginx := o.Spec.Images["nginx"]
		nginx.PullSecrets = refs
		o.Spec.Images["nginx"] = nginx
	}
}

func has(states ...v1beta1.ImageTagStatus) func(*v1beta1.NodeImage) {
	return func(o *v1beta1.NodeImage) {
		o.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: states}}
	}
}

func state(name string, phase v1beta1.ImagePullPhase) v1beta1.ImageTagStatus {
	return v1beta1.ImageTagStatus{Tag: name, Phase: phase}
}

func begun(name string, ago time.Duration) v1beta1.ImageTagStatus {
	s := state(name, v1beta1.ImagePulling)
	s.StartTime = new(metav1.NewTime(now.Add(-ago)))
	return s
}

func ended(name string, ago time.Duration) v1beta1.ImageTagStatus {
	s := state(name, v1beta1.ImageSucceeded)
	s.CompletionTime = new(metav1.NewTime(now.Add(-ago)))
	return s
}

func compute(s Snapshot) Plan {
	s.Name, s.Now, s.CreationDelay = "n1", now, delay
	return Compute(s)
}

func TestLifeFollowsTheNode(t *testing.T) {
	cases := []struct {
		name string
		snap Snapshot
		want action.Verb
		wake time.Duration
	}{
		{"nothing of nothing", Snapshot{}, "", 0},
		{"a node that has been ready long enough", Snapshot{Node: node()}, action.Create, 0},
		{"a node that has been ready for a moment", Snapshot{Node: node(readyFor(10 * time.Second))}, "", 20 * time.Second},
		{"a node that is not ready", Snapshot{Node: node(notReady)}, "", 0},
		{"a node that never told", Snapshot{Node: node(func(n *corev1.Node) { n.Status.Conditions = nil })}, "", 0},
		{"a virtual node", Snapshot{Node: node(virtual)}, "", 0},
		{"a node that goes", Snapshot{Node: node(going)}, "", 0},
		{"a node that is no longer ready keeps it", Snapshot{Node: node(notReady), Image: nodeImage()}, "", 0},
		{"the node is gone", Snapshot{Image: nodeImage()}, action.Delete, 0},
		{"the node goes", Snapshot{Node: node(going), Image: nodeImage()}, action.Delete, 0},
		{"the node is gone and so nearly is the object", Snapshot{Image: nodeImage(func(o *v1beta1.NodeImage) { o.DeletionTimestamp = new(metav1.NewTime(now)) })}, "", 0},
		{"an object for tests needs no node", Snapshot{Image: nodeImage(fake)}, "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := compute(c.snap)
			if c.want == "" {
				assert.Empty(t, got.Steps)
			} else {
				require.Len(t, got.Steps, 1)
				assert.Equal(t, c.want, got.Steps[0].Actions[0].Verb)
			}
			assert.Equal(t, c.wake, got.RequeueAfter)
		})
	}
}

func TestANewNodeImageIsLikeItsNode(t *testing.T) {
	got := compute(Snapshot{Node: node()})

	made := got.Steps[0].Actions[0].Object.(*v1beta1.NodeImage)
	want := nodeImage()
	want.UID, want.ResourceVersion = "", ""
	assert.Equal(t, want, made)
}

// patchOf returns the one patch of a plan, nil when it writes nothing.
func patchOf(t *testing.T, p Plan) map[string]any {
	t.Helper()
	if p.Empty() {
		return nil
	}
	require.Len(t, p.Steps, 1)
	require.Len(t, p.Steps[0].Actions, 1)
	require.Len(t, p.Steps[0].Actions[0].Patches, 1)
	patch := p.Steps[0].Actions[0].Patches[0]
	assert.Equal(t, types.MergePatchType, patch.Type)
	assert.Nil(t, p.Status, "the status waits for the spec")
	return patch.Body
}

func TestMetadataFollowsTheNode(t *testing.T) {
	owner := ownedBy(node())
	cases := []struct {
		name string
		node *corev1.Node
		o    *v1beta1.NodeImage
		want map[string]any
	}{
		{"in order", node(), nodeImage(), nil},
		{
			"labels come, go and change", node(func(n *corev1.Node) { n.Labels = map[string]string{"zone": "b", "new": ""} }),
			nodeImage(func(o *v1beta1.NodeImage) { o.Labels["old"] = "1" }),
			map[string]any{"labels": map[string]any{"zone": "b", "new": "", "old": nil}},
		},
		{"the mark of objects for tests stays", node(), nodeImage(fake), nil},
		{
			"the node lacks space", node(pressed), nodeImage(),
			map[string]any{"annotations": map[string]any{"apps.kruise.io/disk-pressure": "true"}},
		},
		{"it is told that the node lacks space", node(pressed), nodeImage(toldPressed), nil},
		{
			"the node has space again", node(), nodeImage(toldPressed),
			map[string]any{"annotations": map[string]any{"apps.kruise.io/disk-pressure": nil}},
		},
		{
			"owned by nobody", node(), nodeImage(func(o *v1beta1.NodeImage) { o.OwnerReferences = nil }),
			map[string]any{"ownerReferences": []metav1.OwnerReference{owner}},
		},
		{
			"owned by a former node", node(),
			nodeImage(func(o *v1beta1.NodeImage) {
				o.OwnerReferences[0].UID = "former"
				o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"})
			}),
			map[string]any{"ownerReferences": []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}, owner}},
		},
		{"without a node labels are left alone", nil, nodeImage(fake), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := patchOf(t, compute(Snapshot{Node: c.node, Image: c.o}))
			if c.want == nil {
				assert.Nil(t, body)
				return
			}
			assert.Equal(t, map[string]any{"metadata": c.want}, body)
		})
	}
}

func TestWhatIsOverIsDropped(t *testing.T) {
	known := map[Job]bool{{job, "job-uid"}: true, {job, "former"}: false}
	gone := map[Job]bool{{job, "job-uid"}: false}
	other := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: job.Namespace, Name: job.Name, UID: "c"}
	cases := []struct {
		name string
		jobs map[Job]bool
		o    *v1beta1.NodeImage
		want map[string]any // of nginx
		all  bool           // nginx goes
		wake time.Duration
	}{
		{"wanted", nil, nodeImage(wants(tag("1"))), nil, false, agentTimeout},
		{"without a time of creation", nil, nodeImage(wants(tag("1"), v1beta1.ImageTagSpec{Tag: "2"})), map[string]any{"tags": []v1beta1.ImageTagSpec{tag("1")}}, false, 0},
		{"no tag is left", nil, nodeImage(wants(v1beta1.ImageTagSpec{Tag: "2"})), nil, true, 0},
		{"its job is there", known, nodeImage(wants(tag("1", owned(byJob("v1beta1", "job-uid"))))), nil, false, agentTimeout},
		{"its job is gone", gone, nodeImage(wants(tag("1", owned(byJob("v1beta1", "job-uid"))))), nil, true, 0},
		{"its job is gone, in the old version", gone, nodeImage(wants(tag("1", owned(byJob("v1alpha1", "job-uid"))))), nil, true, 0},
		{"its job was replaced", known, nodeImage(wants(tag("1", owned(byJob("v1beta1", "former"))))), nil, true, 0},
		{"of its job nothing is known", nil, nodeImage(wants(tag("1", owned(byJob("v1beta1", "job-uid"))))), nil, false, jobRecheck},
		{"another kind owns it", gone, nodeImage(wants(tag("1", owned(other)))), nil, false, agentTimeout},
		{
			"one of its owners is gone", gone, nodeImage(wants(tag("1", owned(byJob("v1beta1", "job-uid"), other)))),
			map[string]any{"tags": []v1beta1.ImageTagSpec{tag("1", owned(other))}}, false, 0,
		},
		{"pulled a minute ago", nil, nodeImage(wants(tag("1", asked(time.Minute))), has(ended("1", time.Minute))), nil, false, 9 * time.Minute},
		{"pulled long ago", nil, nodeImage(wants(tag("1", asked(time.Hour))), has(ended("1", 10*time.Minute))), nil, true, 0},
		{"nearly over", nil, nodeImage(wants(tag("1", asked(time.Hour))), has(ended("1", 10*time.Minute-time.Second))), nil, false, minWake},
		{"another version was pulled long ago", nil, nodeImage(wants(tag("1", version(1))), has(ended("1", time.Hour))), nil, false, agentTimeout},
		{
			"nothing bounds its life", nil,
			nodeImage(wants(tag("1", func(t *v1beta1.ImageTagSpec) { t.PullPolicy = nil })), has(ended("1", time.Hour))), nil, false, 0,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := compute(Snapshot{Node: node(), Image: c.o, Jobs: c.jobs})
			body := patchOf(t, got)
			switch {
			case c.all:
				assert.Equal(t, map[string]any{"spec": map[string]any{"images": map[string]any{"nginx": nil}}}, body)
			case c.want != nil:
				assert.Equal(t, map[string]any{"spec": map[string]any{"images": map[string]any{"nginx": c.want}}}, body)
			default:
				assert.Nil(t, body)
			}
			assert.Equal(t, c.wake, got.RequeueAfter)
		})
	}
}

func TestSecretsThatAreGoneAreDropped(t *testing.T) {
	ref := func(name string, mode v1beta1.SecretMode) v1beta1.SecretReference {
		return v1beta1.SecretReference{Namespace: "config", Name: name, Mode: mode}
	}
	o := nodeImage(wants(tag("1")), secrets(ref("there", ""), ref("gone", ""), ref("gone", v1beta1.SecretBatch), ref("unknown", "")))
	found := map[types.NamespacedName]bool{{Namespace: "config", Name: "there"}: true, {Namespace: "config", Name: "gone"}: false}

	body := patchOf(t, compute(Snapshot{Node: node(), Image: o, Secrets: found}))

	assert.Equal(t, map[string]any{"spec": map[string]any{"images": map[string]any{"nginx": map[string]any{
		"pullSecrets": []v1beta1.SecretReference{ref("there", ""), ref("gone", v1beta1.SecretBatch), ref("unknown", "")},
	}}}}, body)
	assert.Len(t, o.Spec.Images["nginx"].PullSecrets, 4, "the snapshot is not changed")
}

func TestPullsThatNobodyReportsAboutAreGivenUp(t *testing.T) {
	failed := func(name, message string) v1beta1.ImageTagStatus {
		return v1beta1.ImageTagStatus{Tag: name, Phase: v1beta1.ImageFailed, Message: message, CompletionTime: new(metav1.NewTime(now))}
	}
	pulling := state("1", v1beta1.ImagePulling)
	late := failed("1", MessageDeadline)
	cases := []struct {
		name string
		tag  v1beta1.ImageTagSpec
		has  []v1beta1.ImageTagStatus
		want []v1beta1.ImageTagStatus
		wake time.Duration
	}{
		{"the agent has time", tag("1", asked(9*time.Minute)), nil, nil, time.Minute},
		{"the agent is silent", tag("1", asked(10*time.Minute)), nil, []v1beta1.ImageTagStatus{failed("1", MessageSilent)}, 0},
		{
			"the agent told of another round", tag("1", asked(10*time.Minute), version(1)), []v1beta1.ImageTagStatus{ended("1", time.Hour)},
			[]v1beta1.ImageTagStatus{func() v1beta1.ImageTagStatus { s := failed("1", MessageSilent); s.Version = 1; return s }()}, 0,
		},
		{"a pull may take long", tag("1", asked(time.Hour)), []v1beta1.ImageTagStatus{pulling}, []v1beta1.ImageTagStatus{pulling}, 0},
		{"a deadline is not over", tag("1", asked(time.Minute), deadline(60)), []v1beta1.ImageTagStatus{pulling}, []v1beta1.ImageTagStatus{pulling}, 10 * time.Minute},
		{"a deadline is over", tag("1", asked(11*time.Minute), deadline(60)), []v1beta1.ImageTagStatus{pulling}, []v1beta1.ImageTagStatus{late}, 0},
		{
			"the deadline counts from the first attempt", tag("1", asked(time.Hour), deadline(60)), []v1beta1.ImageTagStatus{begun("1", time.Minute)},
			[]v1beta1.ImageTagStatus{begun("1", time.Minute)}, 10 * time.Minute,
		},
		{"and is over", tag("1", asked(time.Hour), deadline(60)), []v1beta1.ImageTagStatus{begun("1", 11*time.Minute)}, []v1beta1.ImageTagStatus{func() v1beta1.ImageTagStatus {
			s := failed("1", MessageDeadline)
			s.StartTime = begun("1", 11*time.Minute).StartTime
			return s
		}()}, 0},
		{
			"nothing was pulled while it waited", tag("1", asked(11*time.Minute), deadline(60)), []v1beta1.ImageTagStatus{state("1", v1beta1.ImageWaiting)},
			[]v1beta1.ImageTagStatus{failed("1", MessageSilent)}, 0,
		},
		{
			"the agent told why nothing was", tag("1", asked(11*time.Minute), deadline(60)),
			[]v1beta1.ImageTagStatus{func() v1beta1.ImageTagStatus {
				s := state("1", v1beta1.ImageWaiting)
				s.Message = "no runtime"
				return s
			}()},
			[]v1beta1.ImageTagStatus{failed("1", "the pull has not started: no runtime")}, 0,
		},
		{"a pull has ended", tag("1", asked(time.Hour), deadline(60)), []v1beta1.ImageTagStatus{ended("1", time.Minute)}, []v1beta1.ImageTagStatus{ended("1", time.Minute)}, 9 * time.Minute},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := nodeImage(wants(c.tag), has(c.has...))
			got := compute(Snapshot{Node: node(), Image: o})
			require.NotNil(t, got.Status)
			assert.Equal(t, c.want, got.Status.ImageStatuses["nginx"].Tags)
			assert.Equal(t, c.wake, got.RequeueAfter)
			assert.Equal(t, c.has, o.Status.ImageStatuses["nginx"].Tags, "the snapshot is not changed")
		})
	}
}

// A tag waits for its turn as long as others are pulled, and ends when the agent that pulls them is silent.
func TestATagThatWaitsForItsTurnIsNotGivenUp(t *testing.T) {
	waiting := state("1", v1beta1.ImageWaiting)
	long := func(s v1beta1.ImageTagStatus, ago time.Duration) v1beta1.ImageTagStatus {
		s.StartTime = new(metav1.NewTime(now.Add(-ago)))
		return s
	}
	lost := state("2", v1beta1.ImageFailed)
	lost.Message, lost.CompletionTime = MessageSilent, new(metav1.NewTime(now.Add(-time.Minute)))
	cases := []struct {
		name  string
		other v1beta1.ImageTagSpec
		has   v1beta1.ImageTagStatus
		gone  bool
		wake  time.Duration
	}{
		{"another is pulled", tag("2", asked(3*time.Hour), deadline(7200)), begun("2", time.Hour), false, 70 * time.Minute},
		{"another is pulled, without a deadline", tag("2", asked(3*time.Hour)), begun("2", 40*time.Minute), false, 11*time.Minute + 30*time.Second},
		{"another should have ended", tag("2", asked(3*time.Hour), deadline(60)), begun("2", time.Hour), true, 0},
		{"another began a moment ago", tag("2", asked(3*time.Hour), deadline(60)), begun("2", time.Minute), false, 10 * time.Minute},
		{"another has ended a moment ago", tag("2", asked(3*time.Hour)), long(ended("2", time.Minute), time.Hour), false, 9 * time.Minute},
		{"another was given up a moment ago", tag("2", asked(3*time.Hour)), lost, true, 0},
		{"another began by a clock that is ahead", tag("2", asked(3*time.Hour), deadline(60)), begun("2", -24*time.Hour), false, 11 * time.Minute},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := nodeImage(wants(tag("1", asked(2*time.Hour), deadline(60)), c.other), has(waiting, c.has))
			got := compute(Snapshot{Node: node(), Image: o})
			require.NotNil(t, got.Status)
			assert.Equal(t, c.gone, got.Status.ImageStatuses["nginx"].Tags[0].Phase == v1beta1.ImageFailed)
			if !c.gone {
				assert.Equal(t, c.wake, got.RequeueAfter)
			}
		})
	}
}

func TestFailuresAreToldToTheOwners(t *testing.T) {
	owner := byJob("v1beta1", "job-uid")
	o := nodeImage(wants(tag("1", asked(time.Hour), owned(owner))))

	got := compute(Snapshot{Node: node(), Image: o, Jobs: map[Job]bool{{job, "job-uid"}: true}})

	require.Equal(t, []Failure{{
		Image: imageref.Ref{Name: "nginx", Tag: "1"}, Message: MessageSilent, Owners: []corev1.ObjectReference{owner},
	}}, got.Failures)
	assert.Equal(t, action.Notice{
		Type: corev1.EventTypeWarning, Reason: "PullImageFailed",
		Note: "Failed to pull image nginx:1 on node n1 for node has not responded for a long time",
	}, got.Failures[0].Notice("n1"))
}

func TestLeftoversGoAndNumbersAreRight(t *testing.T) {
	o := nodeImage(wants(tag("1"), tag("2")), has(ended("1", time.Minute), state("2", v1beta1.ImagePulling), ended("3", time.Minute)))
	o.Status.ImageStatuses["redis"] = v1beta1.ImageStatus{Tags: []v1beta1.ImageTagStatus{ended("1", time.Minute)}}
	o.Status.FirstSyncStatus = &v1beta1.SyncStatus{Status: v1beta1.SyncSucceeded}

	got := compute(Snapshot{Node: node(), Image: o})

	assert.Equal(t, &v1beta1.NodeImageStatus{
		Desired: 2, Succeeded: 1, Pulling: 1,
		ImageStatuses: map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{
			ended("1", time.Minute), state("2", v1beta1.ImagePulling),
		}}},
		FirstSyncStatus: &v1beta1.SyncStatus{Status: v1beta1.SyncSucceeded},
	}, got.Status)
	assert.Empty(t, got.Failures)
}

// The worked example of the specification.
func TestADeadAgentsTagLivesFor20Minutes(t *testing.T) {
	o := nodeImage(wants(tag("1")))
	at := func(after time.Duration) Plan {
		return Compute(Snapshot{Name: "n1", Node: node(), Image: o, Now: now.Add(after), CreationDelay: delay})
	}

	assert.Empty(t, at(10*time.Minute-time.Second).Failures)
	failed := at(10 * time.Minute)
	require.Len(t, failed.Failures, 1)
	o.Status = *failed.Status
	assert.True(t, func() bool { p := at(20*time.Minute - time.Second); return p.Empty() }())
	gone := at(20 * time.Minute)
	assert.Equal(t, map[string]any{"spec": map[string]any{"images": map[string]any{"nginx": nil}}}, patchOf(t, gone))
}

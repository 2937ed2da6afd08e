package inplace

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/diff"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

// story is one pod, its workload and its node, played by chance.
type story struct {
	t         *testing.T
	random    *rand.Rand
	pod       *corev1.Pod
	node      *kubelet
	revisions map[string]*Revision
	target    *Revision
	resized   bool // a resize was written, and the write after it was lost
	elapsed   time.Duration
	byHand    map[string]bool // annotations that a hand has changed since the last update of them
	annotated time.Duration   // when a hand did so last

	started map[string]string // the containers, with their IDs, when an update to another value of contract.RestartInPlaceAnnotation began
	asked   map[string]string // those of the update that gave the pod its value
	later   sets.Set[string]  // those that are to be restarted for it in a later batch
	written map[string]string // those whose batch was written, with the IDs that they had then
}

// TestUpdatesConverge plays many stories: new revisions arrive while earlier ones are in grace, between
// batches or in the middle of a restart, containers are restarted as they are, writes are lost half way, the node is slow and crashes, and a hand
// changes annotations that containers read, now and then to what the next revision will bring.
func TestUpdatesConverge(t *testing.T) {
	seeds.Each(t, 120, func(t *testing.T, seed uint64) {
		t.Helper()
		s := newStory(t, seed)
		s.node.calm, s.node.roomy = seed%2 == 0, seed%4 != 2
		for range 60 {
			if s.random.IntN(8) == 0 && !s.resized {
				s.retarget()
			}
			if s.random.IntN(12) == 0 {
				s.annotate()
			}
			s.round()
		}
		s.node.calm, s.node.roomy = true, true
		for range 3000 {
			if s.round() {
				s.requireAtTarget()
				if seed%4 == 0 {
					require.Empty(t, s.node.atOnce, "restarted and resized at once")
					require.Empty(t, s.node.inOld, "started with a higher limit than its pod has")
				}
				return
			}
		}
		c := action.NewPodChange(s.pod, at(s.elapsed))
		require.Fail(t, "the update never ends", "%+v\n%v", Refresh(c, allGates), s.pod.Annotations)
	})
}

func newStory(t *testing.T, seed uint64) *story {
	t.Helper()
	s := &story{t: t, random: rand.New(rand.NewPCG(seed, 0)), revisions: map[string]*Revision{}, byHand: map[string]bool{}}
	s.retarget()
	s.pod = runningPod(s.target.Template, s.target.Name)
	injected := corev1.Container{Name: "injected", Image: "mesh:v1", Env: []corev1.EnvVar{envFrom("CFG", "cfg-a")}}
	for i := range s.pod.Spec.Containers {
		if s.random.IntN(3) > 0 {
			c := &s.pod.Spec.Containers[i]
			c.Env = append(c.Env, barrier(fmt.Sprint("p_", s.random.IntN(3))))
		}
	}
	s.node = newKubelet(s.random, s.pod)
	s.node.sync()
	s.node.send(s.pod)
	s.node.agent(s.pod)
	s.pod.Spec.Containers = append(s.pod.Spec.Containers, injected)
	return s
}

// retarget makes a new revision: other metadata alone, or all of it anew.
func (s *story) retarget() {
	t := s.containers()
	if s.target != nil && s.random.IntN(2) == 0 {
		t.Spec = *s.target.Template.Spec.DeepCopy()
	}
	t.Annotations, t.Labels = map[string]string{}, map[string]string{}
	for _, key := range []string{"cfg-a", "cfg-b", "cfg-x", "plain"} {
		if v := s.random.IntN(3); v > 0 {
			t.Annotations[key] = fmt.Sprint(v)
		}
	}
	if value := []string{"", "1", "2", "1 a", "2 b c", "2 c x", "2 y nobody"}[s.random.IntN(7)]; value != "" {
		t.Annotations[contract.RestartInPlaceAnnotation] = value
	}
	if v := s.random.IntN(3); v > 0 {
		t.Labels["version"] = fmt.Sprint(v)
	}
	s.target = revisionOf(fmt.Sprint("w-", len(s.revisions)), t)
	s.revisions[s.target.Name] = s.target
}

// containers are a template with one of few images for each container, and few values for all else.
func (s *story) containers() *corev1.PodTemplateSpec {
	t := withInits(templateOf("a", "b", "c"), "x", "y")
	tags := []string{"v1", "v2", "v3", "v1b"}
	for _, c := range podspec.LongRunning(&t.Spec) {
		c.Image = c.Name + ":" + tags[s.random.IntN(len(tags))]
		c.Resources.Requests = quantities([]string{"100m", "200m"}[s.random.IntN(2)], "1Gi")
		c.Resources.Limits = quantities([]string{"300m", "400m"}[s.random.IntN(2)], "")
		if c.Name == "b" || c.Name == "y" {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
		}
	}
	t.Spec.InitContainers[1].Env = []corev1.EnvVar{envFrom("CFG", "cfg-x")}
	t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "cfg-a"), envFrom("SHARED", "cfg-b")}
	t.Spec.Containers[1].Env = []corev1.EnvVar{envFrom("SHARED", "cfg-b")}
	return t
}

// annotate is a hand on the pod.
func (s *story) annotate() {
	key := []string{"cfg-a", "cfg-b", "cfg-x"}[s.random.IntN(3)]
	s.pod = s.pod.DeepCopy()
	switch value, ok := s.target.Template.Annotations[key]; {
	case s.random.IntN(2) == 0:
		s.pod.Annotations[key] = "9"
	case ok:
		s.pod.Annotations[key] = value
	default:
		delete(s.pod.Annotations, key)
	}
	s.byHand[key], s.annotated = true, s.elapsed
}

// round lets node and workload do something, and reports whether the update to the target is done.
func (s *story) round() (done bool) {
	s.elapsed += time.Duration(50+s.random.IntN(400)) * time.Millisecond
	s.node.step(s.pod)
	if s.random.IntN(2) == 0 {
		return false
	}
	c := action.NewPodChange(s.pod, at(s.elapsed))
	p := Refresh(c, allGates)
	label := s.pod.Labels[contract.RevisionLabel]
	s.resized = s.resized && label != s.target.Name
	switch {
	case !c.Empty():
	case label == s.target.Name:
		return p.Complete
	default:
		u, err := Diff(s.revisions[label], s.target, allGates)
		require.NoError(s.t, err)
		if u.Check(s.pod) != nil {
			return false // the node agent lags behind
		}
		u.Begin(c, int32(max(0, s.random.IntN(6)-3)))
		c.SetLabel(contract.RevisionLabel, s.target.Name)
	}
	s.write(c)
	return false
}

// write makes the change, sometimes only its first write.
func (s *story) write(c *action.PodChange) {
	before := gateOf(s.pod)
	after := written(s.t, c)
	if patches := c.Patches(); len(patches) > 1 && s.random.IntN(6) == 0 {
		s.become(applied(s.t, s.pod, patches[:len(patches)-1]))
		s.resized = s.resized || patches[len(patches)-2].Subresource == "resize"
		return
	}
	s.requireImagesInOrder(after)
	s.requireOwnContainers(after)
	from, to := s.revisions[s.pod.Labels[contract.RevisionLabel]], s.revisions[after.Labels[contract.RevisionLabel]]
	had := hasAskedFor(s.pod, to.Template)
	if key := contract.RestartInPlaceAnnotation; from.Template.Annotations[key] != to.Template.Annotations[key] {
		s.started = map[string]string{}
		for _, c := range podspec.LongRunning(&s.pod.Spec) {
			s.started[c.Name] = running.ID(s.pod, c.Name)
		}
	}
	s.become(after)
	if from != to {
		s.requireRestarts(from.Template, to.Template, had)
		s.begun(from.Template, to.Template)
	}
	if before == corev1.ConditionFalse && gateOf(after) == corev1.ConditionTrue {
		s.requireObservedAnew()
		s.requireEnvironments()
	}
}

// requireImagesInOrder is what a write of images owes: the pod is out of service, one native sidecar changes after the
// other, and containers change after them.
func (s *story) requireImagesInOrder(after *corev1.Pod) {
	earlier := true // all before are what the update makes of them
	before, wanted := podspec.LongRunning(&s.pod.Spec), podspec.LongRunning(&s.target.Template.Spec)
	for i, c := range podspec.LongRunning(&after.Spec) {
		if before[i].Image != c.Image {
			require.Equal(s.t, corev1.ConditionFalse, gateOf(after), "an image changes only out of service")
			require.True(s.t, earlier || after.Labels[contract.RevisionLabel] != s.target.Name, "%s changes before a native sidecar", c.Name)
		}
		if podspec.IsSidecar(c) && (before[i].Image != wanted[i].Image) {
			earlier = false
		}
	}
}

// requireOwnContainers is what the record owes: it names none that the template does not have.
func (s *story) requireOwnContainers(after *corev1.Pod) {
	state := record.Read(action.NewPodChange(after, metav1.Time{})).State
	if state == nil {
		return
	}
	require.False(s.t, state.Touched("injected"), "a batch with a container that the template does not have: %v", state.ContainerBatchesRecord)
}

// become is the pod after a write.
func (s *story) become(after *corev1.Pod) {
	if key := contract.RestartInPlaceAnnotation; after.Annotations[key] != s.pod.Annotations[key] {
		s.asked = s.started
	}
	s.pod = after
	if before := record.Read(action.NewPodChange(after, at(s.elapsed))); before.Grace == nil && before.State != nil {
		s.later, s.written = sets.New(before.State.NextContainerRestarts...), before.State.Restarts
	}
}

// requireRestarts is what the start of an update to another value of the annotation owes: all that it names, or, where the
// pod had the value already, what was not restarted for it yet.
func (s *story) requireRestarts(from, to *corev1.PodTemplateSpec, had bool) {
	if from.Annotations[contract.RestartInPlaceAnnotation] == to.Annotations[contract.RestartInPlaceAnnotation] {
		return
	}
	before := record.Read(action.NewPodChange(s.pod, at(s.elapsed)))
	planned := sets.KeySet(before.State.Restarts)
	if pending := pending(before); pending != nil {
		planned = planned.Union(pending.Restarts)
	}
	least, most := diff.RestartNames(to), diff.RestartNames(to)
	if had {
		least, most = sets.New[string](), sets.New[string]()
		for name := range diff.RestartNames(to) {
			if s.asked[name] == running.ID(s.pod, name) {
				least.Insert(name)
			}
			if id, written := s.written[name]; least.Has(name) || s.later.Has(name) || written && id == running.ID(s.pod, name) {
				most.Insert(name)
			}
		}
	}
	require.Subset(s.t, sets.List(planned), sets.List(least), "restarts, by %v", s.pod.Annotations)
	require.Subset(s.t, sets.List(most), sets.List(planned), "restarts, by %v", s.pod.Annotations)
}

// begun is the start of an update. One that leaves the pod in service and is done with it changes nothing that
// a container would have to read anew.
func (s *story) begun(from, to *corev1.PodTemplateSpec) {
	before := record.Read(action.NewPodChange(s.pod, at(s.elapsed)))
	done := gateOf(s.pod) == corev1.ConditionTrue && pending(before) == nil && s.elapsed-s.annotated >= completion.ReadTime
	for _, key := range []string{"cfg-a", "cfg-b", "cfg-x"} {
		if from.Annotations[key] == to.Annotations[key] {
			continue
		}
		delete(s.byHand, key)
		for _, wanted := range podspec.LongRunning(&to.Spec) {
			c := running.Container(s.pod, wanted.Name)
			if done && agentreport.Reads(c, agentreport.FieldAnnotations, key) {
				require.Equal(s.t, agentreport.ExpectedEnvHash(c, s.pod), s.node.real[c.Name].env, "environment of %s, which nobody will restart", c.Name)
			}
		}
	}
}

// requireObservedAnew is what InPlaceUpdateReady True promises: what runs is what the pod says, by content,
// and the pod says what its revision says.
func (s *story) requireObservedAnew() {
	state, err := record.ReadState(action.NewPodChange(s.pod, metav1.Time{}))
	require.NoError(s.t, err)
	if state == nil || state.Revision != s.pod.Labels[contract.RevisionLabel] {
		return
	}
	for _, c := range podspec.LongRunning(&s.revisions[state.Revision].Template.Spec) {
		name := c.Name
		spec, real := running.Container(s.pod, name), s.node.real[name]
		require.Equal(s.t, c.Image, spec.Image)
		require.Equal(s.t, contentOf(spec.Image), contentOf(real.image), "container %s at %s", name, s.elapsed)
		require.NotEqual(s.t, state.Restarts[name], real.id, "container %s at %s", name, s.elapsed)
	}
}

// requireEnvironments is the rest of that promise, which a hand may break later: what the update renews was
// read by the containers that run, and of no other it is known that it was not.
func (s *story) requireEnvironments() {
	state, err := record.ReadState(action.NewPodChange(s.pod, metav1.Time{}))
	require.NoError(s.t, err)
	if state == nil { // a lost write had left the readiness gate False
		return
	}
	for name, real := range s.node.real {
		c := running.Container(s.pod, name)
		if _, known := agentreport.StartedWith(s.pod, name); known {
			require.True(s.t, record.HasRead(record.Metadata{}, c, s.pod), "environment of %s as the node agent tells", name)
		}
		if state.UpdateEnvFromMetadata && state.Touched(name) && s.elapsed-s.annotated >= completion.ReadTime {
			require.Equal(s.t, agentreport.ExpectedEnvHash(c, s.pod), real.env, "environment of %s", name)
		}
	}
}

func (s *story) requireAtTarget() {
	t := s.target.Template
	require.Equal(s.t, corev1.ConditionTrue, gateOf(s.pod))
	for _, want := range podspec.LongRunning(&t.Spec) {
		c := running.Container(s.pod, want.Name)
		require.Equal(s.t, want.Image, c.Image)
		require.True(s.t, quantity.None(quantity.Missing(c.Resources, want.Resources)))
		require.True(s.t, quantity.None(quantity.Missing(s.node.real[c.Name].resources, c.Resources)))
	}
	for _, key := range []string{"cfg-a", "cfg-b", "cfg-x", "plain"} {
		if s.byHand[key] {
			continue
		}
		require.Equal(s.t, t.Annotations[key], s.pod.Annotations[key], "annotation %s", key)
	}
	require.Equal(s.t, t.Labels["version"], s.pod.Labels["version"])
	require.Equal(s.t, "mesh:v1", running.Container(s.pod, "injected").Image)
	s.requireObservedAnew()
}

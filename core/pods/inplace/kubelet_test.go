package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// process is a container as it really is on the node.
type process struct {
	id, image string
	env       uint64 // EnvHash of what it was started with
	resources corev1.ResourceRequirements
	dead      bool
	stopped   bool // by the node agent, perhaps for what nobody wants any more
	probes    int  // that a native sidecar has to pass yet; the kubelet does not look at its image before
}

// report is a status that the kubelet has computed and not sent yet.
type report struct {
	generation int64
	containers map[string]process
	putsOff    bool
	ready      corev1.ConditionStatus // by the readiness gate alone
}

// kubelet is a node with its runtime and its node agent, slow and unreliable: it sees the pod late, sends
// statuses late, reports the new generation before it acts, pulls for a while with a stale status,
// lets containers crash, and knows images by the first name that it heard.
type kubelet struct {
	random  *rand.Rand
	seen    *corev1.Pod
	real    map[string]process
	env     map[string]uint64 // of all containers that ever ran, by ID
	outbox  *report
	todo    []string // containers that the running sync still has to start
	pull    int      // steps until the next one starts
	serial  int
	calm    bool     // no crashes
	roomy   bool     // it puts nothing off
	putsOff bool     // the node gives no container other resources
	atOnce  []string // containers of which a sync saw another image and other resources at once: their cgroups stay as they were
	inOld   []string // containers that were started with a higher limit than before: the cgroup of the pod stays as it was
}

// runtimeName is the name by which the runtime knows the image, and contentOf its content: a tag
// that ends in "b" is a second name of one image.
func runtimeName(image string) string { return strings.TrimSuffix(image, "b") }

func contentOf(image string) string { return imageIDOf(runtimeName(image)) }

func newKubelet(random *rand.Rand, pod *corev1.Pod) *kubelet {
	k := &kubelet{random: random, seen: pod.DeepCopy(), real: map[string]process{}, env: map[string]uint64{}}
	for _, c := range podspec.LongRunning(&pod.Spec) {
		k.start(c.Name)
	}
	return k
}

func (k *kubelet) start(name string) {
	k.serial++
	c := running.Container(k.seen, name)
	p := process{
		id: fmt.Sprintf("%s-%d", name, k.serial), image: c.Image,
		env: agentreport.ExpectedEnvHash(c, k.seen), resources: k.allocated(c),
	}
	if old, known := k.real[name]; known && !old.stopped && quantity.RaisedLimit(old.resources, p.resources) != "" && !quantity.Restarts(c, quantity.Missing(old.resources, p.resources)) {
		k.inOld = append(k.inOld, p.id)
	}
	if podspec.IsSidecar(c) {
		p.probes = k.random.IntN(4)
	}
	k.real[name] = p
	k.env[k.real[name].id] = k.real[name].env
}

// step lets the node do a little, and writes what it reports to the pod.
func (k *kubelet) step(pod *corev1.Pod) {
	if k.random.IntN(2) == 0 {
		k.send(pod)
	}
	if len(k.todo) > 0 {
		k.work()
		return
	}
	if k.random.IntN(2) == 0 {
		k.seen = pod.DeepCopy()
		k.putsOff = !k.roomy && k.random.IntN(3) == 0
	}
	if k.random.IntN(2) == 0 {
		k.agent(pod)
	}
	if !k.calm && k.random.IntN(12) == 0 {
		k.kill(k.anyContainer())
	}
	if k.random.IntN(2) == 0 {
		k.sync()
	}
}

func (k *kubelet) anyContainer() string {
	return podspec.LongRunning(&k.seen.Spec)[k.random.IntN(len(k.real))].Name
}

// allocated are the resources of which the node runs the container.
func (k *kubelet) allocated(c *corev1.Container) corev1.ResourceRequirements {
	if p, known := k.real[c.Name]; known && k.putsOff {
		return *p.resources.DeepCopy()
	}
	return *c.Resources.DeepCopy()
}

// asked reports whether a container is to have other resources.
func (k *kubelet) asked() bool {
	for _, c := range podspec.LongRunning(&k.seen.Spec) {
		if p, known := k.real[c.Name]; known && !quantity.None(quantity.Missing(p.resources, c.Resources)) {
			return true
		}
	}
	return false
}

func (k *kubelet) kill(name string) {
	p := k.real[name]
	p.dead = true
	k.real[name] = p
}

// sync computes a status first, of the spec that it will act upon and the containers from before.
func (k *kubelet) sync() {
	k.outbox = &report{
		generation: k.seen.Generation, containers: map[string]process{}, putsOff: k.putsOff && k.asked(), ready: gateOf(k.seen),
	}
	maps.Copy(k.outbox.containers, k.real)
	for _, c := range podspec.LongRunning(&k.seen.Spec) {
		p, known := k.real[c.Name]
		if !known {
			continue // a container that this node never reports
		}
		quantities := quantity.Missing(p.resources, k.allocated(c))
		switch {
		case p.probes > 0 && !p.dead:
			p.probes--
			k.real[c.Name] = p
		case p.dead, p.image != c.Image, !quantity.None(quantities) && quantity.Restarts(c, quantities):
			if !p.dead && p.image != c.Image && !quantity.None(quantities) {
				k.atOnce = append(k.atOnce, p.id)
			}
			k.kill(c.Name)
			k.todo = append(k.todo, c.Name)
		default:
			p.resources = k.allocated(c)
			k.real[c.Name] = p
		}
	}
	k.pull = k.random.IntN(4)
}

func (k *kubelet) work() {
	if k.pull > 0 {
		k.pull--
		return
	}
	k.start(k.todo[0])
	k.todo, k.pull = k.todo[1:], k.random.IntN(4)
}

// agent tells of the containers that the status shows, which may be gone by now, and stops those that run
// with another environment or are to be restarted as they are, only while the readiness gate is False.
func (k *kubelet) agent(pod *corev1.Pod) {
	meta := agentreport.RuntimeContainersMeta{}
	for _, c := range podspec.LongRunning(&pod.Spec) {
		status := running.Status(pod, c.Name)
		if status == nil {
			continue
		}
		env := k.env[status.ContainerID]
		meta.Containers = append(meta.Containers, agentreport.RuntimeContainer{
			Name: c.Name, ContainerID: status.ContainerID, Hashes: agentreport.ContainerHashes{ExtractedEnvFromMetadataHash: env},
		})
		real := k.real[c.Name]
		if gateOf(pod) != corev1.ConditionFalse || real.id != status.ContainerID {
			continue
		}
		restart := record.RestartsUnderWay(pod)[c.Name] == real.id && real.image == c.Image
		if restart || env != agentreport.ExpectedEnvHash(c, pod) {
			k.kill(c.Name)
			real = k.real[c.Name]
			real.stopped = true
			k.real[c.Name] = real
		}
	}
	text, err := json.Marshal(meta)
	if err != nil {
		panic(err)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[contract.RuntimeContainersMetaAnnotation] = string(text)
}

func (k *kubelet) send(pod *corev1.Pod) {
	if k.outbox == nil {
		return
	}
	pod.Status.ObservedGeneration = k.outbox.generation
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	if k.outbox.putsOff {
		pod.Status.Conditions = append(pod.Status.Conditions, puttingOff()["deferred"])
	}
	if ready := podstate.Condition(pod, corev1.PodReady); ready != nil && k.outbox.ready != "" {
		ready.Status = k.outbox.ready
	}
	for i := range pod.Status.ContainerStatuses {
		k.outbox.tell(&pod.Status.ContainerStatuses[i])
	}
	for i := range pod.Status.InitContainerStatuses {
		if s := &pod.Status.InitContainerStatuses[i]; running.Sidecar(pod, s.Name) != nil {
			k.outbox.tell(s)
		}
	}
	k.outbox = nil
}

func (r *report) tell(s *corev1.ContainerStatus) {
	p := r.containers[s.Name]
	s.ContainerID, s.Image, s.ImageID = p.id, runtimeName(p.image), contentOf(p.image)
	s.Started = new(!p.dead && p.probes == 0)
	s.Ready, s.Resources = *s.Started, p.resources.DeepCopy()
	if p.dead {
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	} else {
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
}

package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/hash"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

const (
	// sidecarSetHashAnnotation marks pods with injected sidecars, with any owner.
	sidecarSetHashAnnotation = "kruise.io/sidecarset-hash"

	// The pause after an environment could not be read grows from try to try.
	firstEnvPause, maxEnvPause = 3 * time.Second, 10 * time.Minute
	// toldTries is the number of tries after which an event reports an environment that cannot be read: a minute and a half.
	toldTries = 6
	// The delay of the first stop after a container was found outdated; further stops have an exponential backoff.
	firstStopDelay, maxStopDelay = 3 * time.Second, 10 * time.Minute
	// kubeletRestartTime is how long the kubelet may take to restart a container if its image has changed as well, so
	// that there is one restart and not two.
	kubeletRestartTime = 15 * time.Second
)

// NeedsAnnotation reports whether the pod gets the annotation: pods of our workloads, pods with injected sidecars, and
// pods that were created with the annotation, even an empty one.
func NeedsAnnotation(pod *corev1.Pod) bool {
	if _, asked := pod.Annotations[contract.RuntimeContainersMetaAnnotation]; asked {
		return true
	}
	if pod.Annotations[sidecarSetHashAnnotation] != "" {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && strings.HasPrefix(owner.APIVersion, contract.AppsGroup+"/")
}

// NeedEnv returns the IDs of containers with an environment that the plan needs: new running containers and, after a
// pause, running containers with an environment that could not be read before.
func NeedEnv(s Snapshot) []string {
	if !s.EnvFromMetadata {
		return nil
	}
	known := recorded(s.Pod)
	var ids []string
	for _, status := range statuses(s.Pod) {
		c := containerOf(s.Containers, status)
		spec := specOf(s.Pod, status.Name)
		if c == nil || spec == nil || !c.Running || !agentreport.ReadsMetadata(spec) {
			continue
		}
		if s.Unread[c.ID].Next.After(s.Now) {
			continue
		}
		if entry := known[c.ID]; entry == nil || entry.Hashes.ExtractedEnvFromMetadataHash == 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Compute makes the plan of a snapshot.
func Compute(s Snapshot) Plan {
	p := pass{
		Snapshot: s,
		plan: Plan{
			Plan:     action.Plan{Refusals: s.Refusals, Now: s.Now},
			Outdated: map[string]Outdated{},
			Unread:   map[string]Unread{},
		},
	}
	p.report()
	if s.EnvFromMetadata && updating(s.Pod) {
		for i := range p.meta.Containers {
			p.restart(&p.meta.Containers[i])
		}
	}
	p.plan.Plan = action.Admit(p.plan.Plan)
	return p.plan
}

// pass is the state of making one plan.
type pass struct {
	Snapshot
	meta agentreport.RuntimeContainersMeta
	plan Plan
}

// report makes the annotation: an entry for every container that the pod's status and the runtime both know, native
// sidecars last.
func (p *pass) report() {
	known := recorded(p.Pod)
	for _, status := range statuses(p.Pod) {
		c := containerOf(p.Containers, status)
		spec := specOf(p.Pod, status.Name)
		if c == nil || spec == nil {
			continue
		}
		entry := agentreport.RuntimeContainer{
			Name:         c.Name,
			ContainerID:  c.ID,
			RestartCount: c.RestartCount,
			Hashes:       agentreport.ContainerHashes{PlainHash: c.Hash},
		}
		if before := known[c.ID]; before != nil {
			entry = *before
		}
		if p.EnvFromMetadata && entry.Hashes.ExtractedEnvFromMetadataHash == 0 {
			entry.Hashes.ExtractedEnvFromMetadataHash = p.envHash(spec, c)
		}
		p.meta.Containers = append(p.meta.Containers, entry)
	}
	if len(p.meta.Containers) == 0 {
		if !p.cannotStart() {
			return // nothing runs yet
		}
		p.meta.Containers = []agentreport.RuntimeContainer{} // an empty list, not null
	}
	text, err := json.Marshal(p.meta)
	if err == nil && string(text) != p.Pod.Annotations[contract.RuntimeContainersMetaAnnotation] {
		p.plan.Annotation = string(text)
		p.addPatch()
	}
}

// cannotStart reports whether a container that reads metadata, or a native sidecar that others wait for, waits because of
// an error, such as an image that cannot be pulled: only an update may help, and the workload updates only pods that an
// agent has reported.
func (p *pass) cannotStart() bool {
	if !p.EnvFromMetadata || !slices.ContainsFunc(podspec.LongRunning(&p.Pod.Spec), agentreport.ReadsMetadata) {
		return false
	}
	return slices.ContainsFunc(statuses(p.Pod), func(s *corev1.ContainerStatus) bool {
		spec := specOf(p.Pod, s.Name)
		waits := s.State.Waiting
		if spec == nil || waits == nil || waits.Reason == "" || waits.Reason == "ContainerCreating" || waits.Reason == "PodInitializing" {
			return false
		}
		return agentreport.ReadsMetadata(spec) || podspec.IsSidecar(spec)
	})
}

// addPatch writes the annotation through the status: the agent may not change pods. The patch is valid for any version
// of the pod: the values with which its containers were started do not change.
func (p *pass) addPatch() {
	p.plan.Add(action.Step{Name: "report", Actions: []action.Action{{
		Verb:        action.PatchStatus,
		Object:      p.Pod,
		Independent: true,
		Reason:      "ContainerMetadata",
		Message:     "metadata of the started containers",
		Patches: []action.Patch{{
			Subresource: "status",
			AnyVersion:  true,
			Body: map[string]any{
				"metadata": map[string]any{"annotations": map[string]string{contract.RuntimeContainersMetaAnnotation: p.plan.Annotation}},
			},
		}},
	}}})
}

// envHash returns the hash of the pod metadata that the container has read; 0 while its environment is not known.
func (p *pass) envHash(spec *corev1.Container, c *Container) uint64 {
	if agentreport.ReadsMetadata(spec) && c.Env == nil {
		if c.Running {
			p.unread(c)
		}
		return 0
	}
	return agentreport.EnvHash(spec, func(env *corev1.EnvVar, _, _ string) string { return c.Env[env.Name] })
}

// unread notes that the environment of a container is not known, and when it is read again.
func (p *pass) unread(c *Container) {
	u := p.Snapshot.Unread[c.ID]
	if !u.Next.After(p.Now) { // it was tried for this plan
		pause := maxEnvPause
		if u.Tries < 8 { // from here on the pause is longer than maxEnvPause
			pause = min(maxEnvPause, firstEnvPause<<u.Tries)
		}
		u = Unread{Tries: u.Tries + 1, Next: p.Now.Add(pause)}
		if u.Tries == toldTries {
			p.plan.Notices = append(p.plan.Notices, action.Notice{
				Type:   corev1.EventTypeWarning,
				Reason: EventEnvironmentUnknown,
				Action: "ReadEnvironment",
				Note:   "Failed to read the environment of container " + c.Name + " from the container runtime and with command env: an in-place update that changes metadata in this environment does not complete",
			})
		}
	}
	p.plan.Unread[c.ID] = u
	p.plan.RequeueWithin(u.Next.Sub(p.Now))
}

// Wants reports whether the pod, as it is now, wants a container to be restarted: an update in place is under way, and the
// container was started with other values than the pod's metadata has now, or its restart is asked for. A stop that has
// not reached the runtime is given up when the update is taken back.
func Wants(pod *corev1.Pod, id string) bool {
	entry := recorded(pod)[id]
	return entry != nil && pod.DeletionTimestamp == nil && updating(pod) && wants(pod, entry)
}

func wants(pod *corev1.Pod, entry *agentreport.RuntimeContainer) bool {
	spec := specOf(pod, entry.Name)
	read := entry.Hashes.ExtractedEnvFromMetadataHash
	return spec != nil && (record.RestartsUnderWay(pod)[entry.Name] == entry.ContainerID || read != 0 && read != agentreport.ExpectedEnvHash(spec, pod))
}

// restart stops a container that needs a restart. The pauses between two stops grow from run to run, in case that
// no run ever reads the values of the pod.
func (p *pass) restart(entry *agentreport.RuntimeContainer) {
	spec := specOf(p.Pod, entry.Name)
	i := slices.IndexFunc(p.Containers, func(c Container) bool { return c.ID == entry.ContainerID })
	outdated, found := p.Snapshot.Outdated[entry.Name]
	switch {
	case !p.Containers[i].Running || entry.Hashes.ExtractedEnvFromMetadataHash == 0 && found && !wants(p.Pod, entry):
		if found { // the next run is on its way, or its environment is not known yet
			p.plan.Outdated[entry.Name] = outdated
		}
		return
	case !wants(p.Pod, entry):
		return
	case !found:
		outdated = Outdated{Since: p.Now, Next: p.Now.Add(firstStopDelay)}
	}
	next := outdated.Next
	if entry.Hashes.PlainHash != plainHash(spec) {
		next = later(next, outdated.Since.Add(kubeletRestartTime))
	}
	if next.After(p.Now) {
		p.plan.RequeueWithin(next.Sub(p.Now))
	} else {
		p.plan.Stop = append(p.plan.Stop, entry.ContainerID)
		outdated.Stops++
		pause := maxStopDelay
		if outdated.Stops < 10 { // from here on the delay is longer than maxStopDelay
			pause = min(maxStopDelay, firstStopDelay<<outdated.Stops)
		}
		outdated.Next = p.Now.Add(pause)
		p.plan.RequeueWithin(pause)
	}
	p.plan.Outdated[entry.Name] = outdated
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// updating reports whether an in-place update is under way.
func updating(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == contract.InPlaceUpdateReady && c.Status == corev1.ConditionFalse
	})
}

// plainHash returns the hash by which kubelets from 1.31 on know a container.
func plainHash(spec *corev1.Container) uint64 {
	text, _ := json.Marshal(map[string]string{"image": spec.Image, "name": spec.Name}) // strings always marshal
	return uint64(hash.Object(text))
}

// recorded returns the entries of the present annotation by container ID. An annotation that cannot be parsed counts as
// absent.
func recorded(pod *corev1.Pod) map[string]*agentreport.RuntimeContainer {
	meta, err := agentreport.Read(pod)
	if err != nil || meta == nil {
		return nil
	}
	known := make(map[string]*agentreport.RuntimeContainer, len(meta.Containers))
	for i := range meta.Containers {
		known[meta.Containers[i].ContainerID] = &meta.Containers[i]
	}
	return known
}

// containerOf returns the container of a status; nil if the runtime does not have it.
func containerOf(containers []Container, status *corev1.ContainerStatus) *Container {
	i := slices.IndexFunc(containers, func(c Container) bool { return c.ID == status.ContainerID && c.Name == status.Name })
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// specOf returns the container or native sidecar with the name, nil if there is none: other init containers are never
// restarted.
func specOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, c := range podspec.LongRunning(&pod.Spec) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// statuses returns the statuses of containers, and then the statuses of init containers.
func statuses(pod *corev1.Pod) []*corev1.ContainerStatus {
	all := make([]*corev1.ContainerStatus, 0, len(pod.Status.ContainerStatuses)+len(pod.Status.InitContainerStatuses))
	for i := range pod.Status.ContainerStatuses {
		all = append(all, &pod.Status.ContainerStatuses[i])
	}
	for i := range pod.Status.InitContainerStatuses {
		all = append(all, &pod.Status.InitContainerStatuses[i])
	}
	return all
}

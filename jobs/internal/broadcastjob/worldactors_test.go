package broadcastjob

import (
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/testing/retries"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// addJob makes a job, of which nothing is known.
func (w *world) addJob() {
	j := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: jobName.Namespace, Name: jobName.Name, Generation: 1}}
	j.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"zone": "a"},
		Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
	}
	j.Spec.FailurePolicy.Type = []v1beta1.FailurePolicyType{"", v1beta1.FailFast, v1beta1.FailContinue, v1beta1.FailContinue, v1beta1.FailPause}[w.IntN(5)]
	switch w.IntN(4) {
	case 0, 1:
		j.Spec.Template.Spec.RestartPolicy, j.Spec.FailurePolicy.RestartLimit = corev1.RestartPolicyOnFailure, 2
	case 2:
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
			onExit(batchv1.PodFailurePolicyActionFailJob, 1), onExit(batchv1.PodFailurePolicyActionIgnore, 2, 3),
			{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			}},
		}}
	}
	switch w.IntN(6) {
	case 0, 1:
		j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
	case 2:
		j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(20 + w.IntN(60)))
	case 3:
		j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(20 + w.IntN(60)))
		fallthrough
	case 4:
		j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(w.IntN(40)))
	}
	if w.IntN(2) == 0 {
		j.Spec.Parallelism = new(intstr.Parse([]string{"1", "2", "40%", "0"}[w.IntN(4)]))
	}
	w.stamp(j)
	w.job, w.ended, w.taken, w.tries = j, nil, false, retries.Tries{}
	w.counted, w.calmed, w.deleted = map[types.UID]bool{}, map[string]bool{}, map[string]bool{}
}

func onExit(do batchv1.PodFailurePolicyAction, codes ...int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: do, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: codes,
	}}
}

func (w *world) addNode() {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", w.IntN(8)), Labels: map[string]string{"zone": "a"}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	if w.nodes[n.Name] == nil {
		w.stamp(n)
		w.nodes[n.Name] = n
	}
}

// changeNode has a node take the pods of the job, take no new ones, or drive them away. Most reports of a node change
// nothing of that.
func (w *world) changeNode(name string) {
	n := w.nodes[name].DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(w.at)}}
	taint := func(effect corev1.TaintEffect) []corev1.Taint { return []corev1.Taint{{Key: "broken", Effect: effect}} }
	if w.IntN(3) > 0 {
		n.Spec.Unschedulable, n.Spec.Taints, n.Labels = false, nil, map[string]string{"zone": "a"}
		switch w.IntN(6) {
		case 0:
			n.Spec.Unschedulable = true
		case 1:
			n.Spec.Taints = taint(corev1.TaintEffectNoSchedule)
		case 2:
			n.Spec.Taints = taint(corev1.TaintEffectNoExecute)
		case 3:
			n.Labels["zone"] = "b"
		}
	}
	w.stamp(n)
	w.nodes[name] = n
}

// heal has all nodes take the pods of the job.
func (w *world) heal() {
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if n := w.nodes[name].DeepCopy(); !takes(n) {
			n.Spec.Unschedulable, n.Spec.Taints, n.Labels = false, nil, map[string]string{"zone": "a"}
			w.stamp(n)
			w.nodes[name] = n
		}
	}
}

// takes reports whether a node takes pods of the job.
func takes(n *corev1.Node) bool {
	return !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 && n.Labels["zone"] == "a"
}

// kubelet brings a pod forward.
func (w *world) kubelet(key string) {
	o := w.pods[key].DeepCopy()
	n, there := w.nodes[nodeOf(o)]
	switch {
	case o.DeletionTimestamp != nil && hasEnded(o):
		w.remove(key)
		return
	case !there || hasEnded(o):
		return
	case o.DeletionTimestamp != nil:
		w.lastPhase(o)
	case o.Status.Phase == corev1.PodPending:
		o.Spec.NodeName, o.Status.Phase = n.Name, corev1.PodRunning
	case o.Spec.ActiveDeadlineSeconds != nil:
		o.Status.Phase = corev1.PodFailed
	case w.IntN(3) > 0 || w.calm:
		o.Status.Phase = corev1.PodSucceeded
	case o.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: restarts(o) + 1, LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error"},
		}}}
	case w.IntN(2) == 0:
		o.Status.Phase = corev1.PodFailed
		w.disrupt(o)
	default:
		w.exit(o, int32(1+w.IntN(4))) //nolint:gosec // it is small
	}
	w.stamp(o)
	w.pods[key] = o
}

func (w *world) disrupt(o *corev1.Pod) {
	o.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: w.clockOf(o)}}
}

func (w *world) exit(o *corev1.Pod, code int32) {
	o.Status.Phase = corev1.PodFailed
	o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: restarts(o), State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: w.clockOf(o)},
	}}}
}

// wrongBy is how far the clocks of some nodes are ahead.
var wrongBy = map[string]time.Duration{"n5": -time.Hour, "n6": -5 * time.Second, "n7": time.Hour}

// clockOf returns the time on the node of the pod.
func (w *world) clockOf(o *corev1.Pod) metav1.Time {
	return metav1.NewTime(w.at.Add(wrongBy[nodeOf(o)]))
}

// lastPhase is what the kubelet reports of a deleted pod before it goes: its containers were killed, or one of them has
// handled the signal.
func (w *world) lastPhase(o *corev1.Pod) {
	if w.IntN(8) == 0 {
		o.Status.Phase = corev1.PodSucceeded
		return
	}
	w.exit(o, 143)
	if w.IntN(2) == 0 {
		w.disrupt(o)
	}
}

// remove deletes a pod as the server does. It begins to leave; once it has ended, was not started or leaves already, its
// time to leave is now, and then it is gone.
func (w *world) remove(key string) {
	o, there := w.pods[key]
	if !there {
		return
	}
	o = o.DeepCopy()
	if hasEnded(o) || o.DeletionTimestamp != nil || o.Spec.NodeName == "" {
		if o.DeletionTimestamp != nil && *o.DeletionGracePeriodSeconds == 0 {
			delete(w.pods, key)
			return
		}
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = new(metav1.NewTime(w.at)), new(int64(0))
		w.stamp(o)
		w.pods[key] = o
		return
	}
	o.DeletionTimestamp, o.DeletionGracePeriodSeconds = new(metav1.NewTime(w.at.Add(30*time.Second))), new(int64(30))
	w.stamp(o)
	w.pods[key] = o
	// A pod that was restarted too often has failed while it runs, and the operator deletes it for that.
	w.deleted[key] = w.job == nil || o.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || restarts(o) <= w.job.Spec.FailurePolicy.RestartLimit
}

// collect removes the pods of nodes and jobs that are gone, as the cluster's garbage collectors do.
func (w *world) collect() {
	for key, o := range w.pods {
		orphan := w.owner[key] != "" && (w.job == nil || w.owner[key] != w.job.UID)
		if _, there := w.nodes[nodeOf(o)]; !there || orphan {
			delete(w.pods, key)
		}
	}
}

// addForeign makes a pod that looks like one of the job, and is none.
func (w *world) addForeign(node string) {
	if w.job == nil {
		return
	}
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: jobName.Namespace, Name: fmt.Sprint("foreign-", w.uids), CreationTimestamp: metav1.NewTime(w.at),
		Labels:          map[string]string{v1beta1.BroadcastJobNameLabel: jobName.Name, v1beta1.BroadcastJobUIDLabel: string(w.job.UID)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.job, kind())},
	}, Spec: *w.job.Spec.Template.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}}
	o.Spec.NodeName = node
	switch w.IntN(5) {
	case 0: // of another job
		o.OwnerReferences[0].Name, o.OwnerReferences[0].UID = "other", "other"
	case 1: // of an earlier job of the name
		o.OwnerReferences[0].UID = "earlier"
	case 2: // of a job, beside another owner
		o.OwnerReferences[0].Controller = new(false)
	case 3:
		o.Namespace = "elsewhere"
	case 4: // without the labels by which jobs know their pods
		o.Labels = nil
	}
	w.stamp(o)
	w.pods[client.ObjectKeyFromObject(o).String()] = o
}

// disturb is what users, others and the weather do.
func (w *world) disturb() {
	names, pods := slices.Sorted(maps.Keys(w.nodes)), slices.Sorted(maps.Keys(w.pods))
	some := ""
	if len(names) > 0 {
		some = names[w.IntN(len(names))]
	}
	switch w.IntN(14) {
	case 0:
		w.addNode()
	case 1:
		delete(w.nodes, some)
	case 2, 3:
		if some != "" {
			w.changeNode(some)
		}
	case 4:
		if len(pods) > 0 {
			w.remove(pods[w.IntN(len(pods))])
		}
	case 5:
		w.edit(func(spec *v1beta1.BroadcastJobSpec) { spec.Parallelism = new(intstr.FromInt(w.IntN(4))) })
	case 6:
		w.edit(func(spec *v1beta1.BroadcastJobSpec) { spec.Paused = w.IntN(2) == 0 })
	case 7:
		w.refused = []action.Verb{action.Create, action.Delete, action.PatchSpec, action.PatchMetadata, "", ""}[w.IntN(6)]
	case 8:
		w.collect()
	case 9:
		if some != "" {
			w.addForeign(some)
		}
	case 10:
		switch {
		case w.job == nil && (w.taken || w.IntN(2) == 0):
			w.addJob()
		case w.job != nil && w.IntN(6) == 0:
			w.job, w.taken = nil, true
		}
	}
}

func (w *world) edit(change func(*v1beta1.BroadcastJobSpec)) {
	if w.job != nil {
		w.tries = retries.Tries{} // an edit cuts pauses short
		w.changeJob(func(job *v1beta1.BroadcastJob) {
			job.Generation++
			change(&job.Spec)
		})
	}
}

// counts is how a pod counts for its job.
type counts int

const (
	hasSucceeded counts = iota
	hasFailed
	isActive
	isLeaving // was deleted before it has ended
	isIgnored // has failed, which does not count
)

// countsAs is how the pods of this world count: what a rule is about counts by the rule, and what was killed because it was
// deleted, or is on its way out, has not failed.
func countsAs(job *v1beta1.BroadcastJob, o *corev1.Pod) counts {
	switch {
	case o.Status.Phase == corev1.PodSucceeded:
		return hasSucceeded
	case o.Status.Phase == corev1.PodFailed:
		code := int32(0)
		if len(o.Status.ContainerStatuses) > 0 && o.Status.ContainerStatuses[0].State.Terminated != nil {
			code = o.Status.ContainerStatuses[0].State.Terminated.ExitCode
		}
		rules := job.Spec.PodFailurePolicy != nil
		switch {
		case rules && code == 1:
			return hasFailed
		case rules && (code == 2 || code == 3 || len(o.Status.Conditions) > 0):
			return isIgnored
		case o.DeletionTimestamp != nil && (code == 0 || code == 143 || *o.DeletionGracePeriodSeconds == 0):
			return isLeaving
		}
		return hasFailed
	case o.DeletionTimestamp != nil:
		return isLeaving
	case o.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && restarts(o) > job.Spec.FailurePolicy.RestartLimit:
		return hasFailed
	}
	return isActive
}

func nodeOf(o *corev1.Pod) string { return eligibility.NodeOf(o) }

func hasEnded(o *corev1.Pod) bool {
	return o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed
}

func restarts(o *corev1.Pod) int32 {
	if len(o.Status.ContainerStatuses) == 0 {
		return 0
	}
	return o.Status.ContainerStatuses[0].RestartCount
}

// endOf returns when a pod of this world has failed, as far as the clock of its node is right.
func endOf(o *corev1.Pod) time.Time {
	end := o.CreationTimestamp.Time
	if wrongBy[nodeOf(o)] != 0 {
		return end
	}
	for i := range o.Status.ContainerStatuses {
		if s := o.Status.ContainerStatuses[i].State.Terminated; s != nil {
			end = s.FinishedAt.Time
		}
	}
	for i := range o.Status.Conditions {
		end = o.Status.Conditions[i].LastTransitionTime.Time
	}
	return end
}

package argocd_test

import (
	"testing"

	"github.com/flotilla-project/flotilla/test/argocd"
)

// at returns an object at generation 2.
func at(spec, status string) string {
	return "metadata: {name: it, generation: 2}\nspec: {" + spec + "}\nstatus: {" + status + "}\n"
}

// unseen returns what all kinds say alike.
func unseen(spec string) []state {
	return []state{
		{"created", "metadata: {name: it, generation: 1}\nspec: {" + spec + "}\n", argocd.Health{Status: "Progressing", Message: "the operator has yet to observe the latest spec"}},
		{"edited", at(spec, "observedGeneration: 1"), argocd.Health{Status: "Progressing", Message: "the operator has yet to observe the latest spec"}},
		{
			"being deleted", "metadata: {name: it, generation: 1, deletionTimestamp: \"2026-01-02T12:00:00Z\"}\nspec: {" + spec + "}\n",
			argocd.Health{Status: "Progressing", Message: "the object is terminating"},
		},
	}
}

func TestHealthOfBroadcastJobs(t *testing.T) {
	const (
		spec  = "template: {spec: {containers: [{name: main}]}}"
		never = spec + ", completionPolicy: {type: Never}"
		three = "observedGeneration: 2, desired: 3, "
	)
	checkStates(t, "BroadcastJob", append(unseen(spec), []state{
		{"running", at(spec, three+"phase: running, active: 2, succeeded: 1"), argocd.Health{Status: "Progressing", Message: "1 of 3 nodes have succeeded"}},
		{"paused", at(spec, three+"phase: paused, message: job is paused"), argocd.Health{Status: "Suspended", Message: "job is paused"}},
		{"completed", at(spec, three+`phase: completed, succeeded: 3, conditions: [{type: Complete, status: "True"}]`), argocd.Health{Status: "Healthy", Message: "3 of 3 nodes have succeeded"}},
		{"completed before it was edited", at(spec, `observedGeneration: 1, desired: 3, succeeded: 3, conditions: [{type: Complete, status: "True"}]`), argocd.Health{Status: "Healthy", Message: "3 of 3 nodes have succeeded"}},
		{"completed with failures", at(spec, three+`phase: completed, succeeded: 2, failed: 1, conditions: [{type: Complete, status: "True"}]`), argocd.Health{Status: "Degraded", Message: "1 of 3 nodes have failed"}},
		{"failed", at(spec, three+`phase: failed, failed: 1, message: too late, conditions: [{type: Failed, status: "True"}]`), argocd.Health{Status: "Degraded", Message: "too late"}},
		{"waits for nodes that join", at(never, three+"phase: running, succeeded: 3"), argocd.Health{Status: "Healthy", Message: "3 of 3 nodes have succeeded"}},
		{"runs on a node that has joined", at(never, three+"phase: running, active: 1, succeeded: 2"), argocd.Health{Status: "Progressing", Message: "2 of 3 nodes have succeeded"}},
	}...), "v1alpha1", "v1beta1")
}

func TestHealthOfAdvancedCronJobs(t *testing.T) {
	const spec = `schedule: "* * * * *"`
	says := func(status, reason string, lastRun ...string) string {
		conditions := "{type: Scheduling, status: \"" + status + "\", reason: " + reason + ", message: m}"
		for _, succeeded := range lastRun {
			conditions += ", {type: LastRunSucceeded, status: \"" + succeeded + "\", message: r}"
		}
		return at(spec, "observedGeneration: 2, conditions: ["+conditions+"]")
	}
	checkStates(t, "AdvancedCronJob", append(unseen(spec), []state{
		{"not yet judged", at(spec, "observedGeneration: 2"), argocd.Health{Status: "Progressing", Message: "waiting for condition Scheduling"}},
		{"as scheduled", says("True", "AsScheduled"), argocd.Health{Status: "Healthy", Message: "m"}},
		{"a job runs", says("False", "JobActive"), argocd.Health{Status: "Healthy", Message: "m"}},
		{"paused", says("False", "Paused"), argocd.Health{Status: "Suspended", Message: "m"}},
		{"refused", says("False", "CreateRefused"), argocd.Health{Status: "Degraded", Message: "m"}},
		{"the last run has succeeded", says("True", "AsScheduled", "True"), argocd.Health{Status: "Healthy", Message: "m"}},
		{"the last run has failed", says("True", "AsScheduled", "False"), argocd.Health{Status: "Degraded", Message: "r"}},
		{"the next run is active after one that has failed", says("False", "JobActive", "False"), argocd.Health{Status: "Degraded", Message: "r"}},
		{"paused after a run that has failed", says("False", "Paused", "False"), argocd.Health{Status: "Suspended", Message: "m"}},
	}...), "v1alpha1", "v1beta1")
}

func TestHealthOfImagePullJobs(t *testing.T) {
	const (
		spec  = "image: nginx"
		never = spec + ", completionPolicy: {type: Never}"
		three = "observedGeneration: 2, desired: 3, "
		ended = `completionTime: "2026-01-02T12:00:00Z", `
	)
	checkStates(t, "ImagePullJob", append(unseen(spec), []state{
		{"pulling", at(spec, three+"active: 2, succeeded: 1"), argocd.Health{Status: "Progressing", Message: "1 of 3 nodes have the image"}},
		{"done", at(spec, three+ended+"succeeded: 3"), argocd.Health{Status: "Healthy", Message: "3 of 3 nodes have the image"}},
		{"failed", at(spec, three+ended+"succeeded: 2, failed: 1, message: not found"), argocd.Health{Status: "Degraded", Message: "not found"}},
		{"waits for nodes that join", at(never, three+"succeeded: 3"), argocd.Health{Status: "Healthy", Message: "3 of 3 nodes have the image"}},
		{"pulls on a node that has joined", at(never, three+"active: 1, succeeded: 2"), argocd.Health{Status: "Progressing", Message: "2 of 3 nodes have the image"}},
	}...), "v1alpha1", "v1beta1")
}

func TestHealthOfImageListPullJobs(t *testing.T) {
	const (
		spec   = "images: [nginx, redis]"
		two    = "observedGeneration: 2, desired: 2, "
		failed = ", failedImageStatuses: [{name: redis, imagePullJob: it-redis, message: not found}]"
		ended  = `completionTime: "2026-01-02T12:00:00Z", `
	)
	checkStates(t, "ImageListPullJob", append(unseen(spec), []state{
		{"pulling", at(spec, two+"active: 1, succeeded: 1"), argocd.Health{Status: "Progressing", Message: "1 of 2 images are on all nodes"}},
		{"pulling beside a failure", at(spec, two+"active: 1"+failed), argocd.Health{Status: "Progressing", Message: "0 of 2 images are on all nodes"}},
		{"done", at(spec, two+ended+"succeeded: 2"), argocd.Health{Status: "Healthy", Message: "2 of 2 images are on all nodes"}},
		{"failed", at(spec, two+ended+"succeeded: 1"+failed), argocd.Health{Status: "Degraded", Message: "redis: not found"}},
	}...), "v1alpha1", "v1beta1")
}

func TestHealthOfWorkloadSpreads(t *testing.T) {
	const spec = "subsets: [{name: a}, {name: b}]"
	subset := func(conditions string) string {
		return at(spec, "observedGeneration: 2, subsetStatuses: [{name: a, replicas: 2, missingReplicas: 0"+conditions+"}]")
	}
	checkStates(t, "WorkloadSpread", append(unseen(spec), []state{
		{"all is well", subset(""), argocd.Health{Status: "Healthy", Message: "all subsets get pods"}},
		{
			"a subset without nodes", subset(`, conditions: [{type: Schedulable, status: "False", reason: PodUnschedulable, message: no node}]`),
			argocd.Health{Status: "Healthy", Message: "pods pass subset a over: no node"},
		},
	}...), "v1alpha1", "v1beta1")
}

func TestHealthOfPodUnavailableBudgets(t *testing.T) {
	const spec = "maxUnavailable: 1"
	says := func(kind, status, reason string) string {
		return at(spec, "observedGeneration: 2, unavailableAllowed: 1, conditions: [{type: "+kind+", status: \""+status+"\", reason: "+reason+", message: m}]")
	}
	checkStates(t, "PodUnavailableBudget", append(unseen(spec), []state{
		{"something is granted", says("Exhausted", "False", "SufficientPods"), argocd.Health{Status: "Healthy", Message: "1 pods may become unavailable"}},
		{"nothing is granted", says("Exhausted", "True", "InsufficientPods"), argocd.Health{Status: "Healthy", Message: "1 pods may become unavailable"}},
		{"a spec that cannot be followed", says("Exhausted", "True", "InvalidSpec"), argocd.Health{Status: "Degraded", Message: "m"}},
		{"replicas are unknown", says("ReplicasUnknown", "True", "Forbidden"), argocd.Health{Status: "Degraded", Message: "m"}},
		{"two budgets for a pod", says("Conflict", "True", "PodsCoveredTwice"), argocd.Health{Status: "Degraded", Message: "m"}},
	}...), "v1alpha1", "v1beta1")
}

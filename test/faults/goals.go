package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Nodes is the number of nodes of the cluster.
	Nodes = 3

	oldImage, newImage = "flotilla/demo-app:v1", "flotilla/demo-app:v2"
)

// goal is the wanted number of pods of a workload that are ready and run the image. A workload has no other pods than those
// of its goals.
type goal struct {
	app   string
	pods  int
	image string
}

func before() []goal {
	return []goal{
		{"inplace", 4, oldImage}, {"surge", 3, oldImage}, {"ordered", 3, oldImage}, {"everywhere", Nodes, oldImage}, {"spread", 4, oldImage},
		{"guarded", 3, oldImage}, {"restarted", 1, oldImage}, {"parted", 4, oldImage}, {"paused", 2, oldImage}, {"bystander", 1, oldImage},
	}
}

func after() []goal {
	return []goal{
		{"inplace", 5, newImage}, {"surge", 3, newImage}, {"ordered", 4, newImage}, {"everywhere", Nodes, newImage}, {"spread", 4, newImage},
		{"guarded", 3, oldImage}, {"restarted", 1, oldImage}, {"parted", 2, oldImage}, {"parted", 2, newImage}, {"paused", 2, oldImage},
		{"bystander", 1, oldImage},
	}
}

// subsetLimit is maxReplicas of the first subset of the WorkloadSpread.
const subsetLimit = 2

// overfilled returns an error if the subset with a limit has more pods.
func overfilled(pods []Pod) error {
	n := 0
	for _, p := range pods {
		if p.Subset == "some" && p.lives() {
			n++
		}
	}
	if n > subsetLimit {
		return fmt.Errorf("subset some has %d pods, at most %d may be there", n, subsetLimit)
	}
	return nil
}

// reach returns an error for each goal that the pods do not meet.
func reach(pods []Pod, goals []goal) error {
	var missed []error
	wanted := map[string]int{}
	for _, g := range goals {
		wanted[g.app] += g.pods
	}
	for _, g := range goals {
		there, good := 0, 0
		for _, p := range pods {
			if p.App != g.app || p.Over {
				continue
			}
			there++
			if p.serves() && p.Image == g.image && p.Runs == g.image {
				good++
			}
		}
		if good != g.pods || there != wanted[g.app] {
			missed = append(missed, fmt.Errorf("%s has %d pods, %d of them ready with %s, and wants %d of %d", g.app, there, good, g.image, g.pods, wanted[g.app]))
		}
	}
	return errors.Join(missed...)
}

func (s *Stage) reached(ctx context.Context, namespace string, goals []goal) error {
	list := &corev1.PodList{}
	if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	var pods []Pod
	for i := range list.Items {
		pods = append(pods, podOf(&list.Items[i]))
	}
	return errors.Join(reach(pods, goals), overfilled(pods))
}

// ending is what the end of a run depends on.
type ending struct {
	after     time.Time       // the end of the fault
	recreated map[string]bool // the kinds with objects that the fault creates again
	closed    map[string]bool // the nodes that were closed at some moment
}

// complete returns an error while a rollout is not complete, an object is lost, or an operator does not answer.
func (s *Stage) complete(ctx context.Context, namespace string, objects []*unstructured.Unstructured, e ending) error {
	missed := []error{s.reached(ctx, namespace, after())}
	for _, o := range objects {
		now := o.DeepCopy()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			missed = append(missed, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err))
			continue
		}
		if now.GetUID() != o.GetUID() && !e.recreated[o.GetKind()] {
			missed = append(missed, fmt.Errorf("%s %s is another one", o.GetKind(), o.GetName()))
		}
		missed = append(missed, ends(now, e), s.answers(ctx, now))
	}
	return errors.Join(missed...)
}

// answers asks the API server, and with it webhooks, for an edit that is not stored.
func (s *Stage) answers(ctx context.Context, o *unstructured.Unstructured) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"faults":"asks"}}}`))
	if err := s.Client.Patch(ctx, o.DeepCopy(), patch, client.DryRunAll); err != nil {
		return fmt.Errorf("edit %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// ends returns an error while the status of the object shows that it has work to do. A BroadcastJob that begins while a node
// is closed wants no pod there.
func ends(o *unstructured.Unstructured, e ending) error {
	field := func(path ...string) any {
		value, _, _ := unstructured.NestedFieldNoCopy(o.Object, append([]string{"status"}, path...)...)
		return value
	}
	done := true
	switch o.GetKind() {
	case "CloneSet", "StatefulSet", "DaemonSet":
		done = field("observedGeneration") == o.GetGeneration() && condition(o, "Ready") == "True"
	case "WorkloadSpread", "PodUnavailableBudget":
		done = field("observedGeneration") == o.GetGeneration()
	case "BroadcastJob":
		desired, _ := field("desired").(int64)
		done = field("succeeded") == desired && desired >= int64(Nodes-len(e.closed)) && field("completionTime") != nil
	case "ImagePullJob":
		done = field("succeeded") == int64(Nodes) && field("completionTime") != nil
	case "ContainerRecreateRequest":
		done = field("phase") == "Completed"
	case "AdvancedCronJob":
		last, _ := field("lastScheduleTime").(string)
		at, err := time.Parse(time.RFC3339, last)
		done = err == nil && at.After(e.after)
	}
	if done {
		return nil
	}
	return fmt.Errorf("%s %s has status %v", o.GetKind(), o.GetName(), o.Object["status"])
}

func condition(o *unstructured.Unstructured, wanted string) any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == wanted {
			return c["status"]
		}
	}
	return nil
}

package forecast

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// Scene is a workload with the objects around it.
type Scene struct {
	Kind workload.Kind
	// Set is the workload as it is stored, in version v1beta1.
	Set *unstructured.Unstructured
	// Pods belong to the workload. Others are the remaining pods of the cluster, which take up room on the nodes.
	Pods, Others []*corev1.Pod
	// Nodes are the nodes of the cluster; without one, each pod finds a place, and a DaemonSet runs on the nodes of its pods.
	Nodes     []*corev1.Node
	Revisions []*appsv1.ControllerRevision
	Claims    []*corev1.PersistentVolumeClaim
	// Classes are the storage classes of the cluster.
	Classes []*storagev1.StorageClass
	// Volumes are bound to claims; a volume that is missing can be mounted on all nodes.
	Volumes []*corev1.PersistentVolume
	Quotas  []*corev1.ResourceQuota
	// Budgets and Unavailable are the disruption budgets of the namespace: PodDisruptionBudgets and PodUnavailableBudgets.
	Budgets     []*policyv1.PodDisruptionBudget
	Unavailable []*unstructured.Unstructured
	// Spreads are the WorkloadSpreads of the namespace; nil if they cannot be read.
	Spreads []*unstructured.Unstructured
	// Running is the version of the operator of the cluster, empty if unknown.
	Running string
	// Gates are its feature gates, as in --feature-gates; empty if they have their defaults.
	Gates string
	// Minor is the minor version of the API server, such as 37; 0 if unknown.
	Minor int
	// Now is the moment at which all of this was so.
	Now time.Time
	// Unread has a line for each kind that could not be read.
	Unread []string
}

// objects returns the objects of the simulated cluster, owners first.
func (s *Scene) objects() ([]action.Object, error) {
	set, err := s.typed(s.Set)
	if err != nil {
		return nil, err
	}
	all := []action.Object{set}
	all = appendTo(all, s.places())
	all = appendTo(all, s.Revisions)
	all = appendTo(all, s.Claims)
	all = appendTo(all, s.Classes)
	all = appendTo(all, s.Unavailable)
	all = appendTo(all, s.Spreads)
	return appendTo(all, s.Pods), nil
}

func appendTo[T action.Object](all []action.Object, more []T) []action.Object {
	for _, o := range more {
		all = append(all, o)
	}
	return all
}

// hasAgents reports whether the nodes run the agents of feature daemon: they report each container in an annotation of its
// pod. In a cluster without pods it is taken for granted.
func (s *Scene) hasAgents() bool {
	return len(s.Pods) == 0 || slices.ContainsFunc(s.Pods, func(pod *corev1.Pod) bool {
		return pod.Annotations[contract.RuntimeContainersMetaAnnotation] != ""
	})
}

// judgesResizes reports whether the API server refuses a resize of a pod to more than its node has.
func (s *Scene) judgesResizes() bool { return s.Minor == 0 || s.Minor >= 36 }

// played is the kind of the workload, as the operator of the cluster plans it.
func (s *Scene) played() (rehearse.Kind, error) { return kinds()[s.Kind.Feature](s.Gates) }

// typed returns the Go object of a set.
func (s *Scene) typed(set *unstructured.Unstructured) (action.Object, error) {
	kind, err := s.played()
	if err != nil {
		return nil, err
	}
	o := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(set.Object, o); err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", s.Kind.Short(), set.GetName(), err)
	}
	return o, nil
}

// untyped returns a set of the simulated cluster as commands read it.
func (s *Scene) untyped(o action.Object) (*workload.Set, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", s.Kind.Short(), o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetAPIVersion(workload.Group + "/" + Version)
	u.SetKind(s.Kind.Name)
	return workload.Read(s.Kind, u)
}

package simulate

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/frame/orphans"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// LostPods runs package orphans in a world: its cache is a view of the pods with a label, and its server the world as
// it is.
type LostPods struct {
	world  *World
	label  string
	finder *orphans.Finder
	view   *View
}

// LostPods finds the pods that a cache of pods with the label does not show.
func (w *World) LostPods(label string) *LostPods {
	l := &LostPods{world: w, label: label}
	l.Restart()
	return l
}

// Restart empties the memory.
func (l *LostPods) Restart() {
	l.finder = orphans.New(l.uncontrolled, server{world: l.world}, l.label)
}

// Find returns orphans.Finder.Find for a pass that sees the view.
func (l *LostPods) Find(view *View, s orphans.Search, now time.Time) (orphans.Found, error) {
	l.view = view
	return l.finder.Find(context.Background(), s, now)
}

// Followed passes the outcomes of the workload's actions to the finder, as package engine does.
func (l *LostPods) Followed(namespace, workload string, results []progress.Outcome) {
	l.finder.Follow(types.NamespacedName{Namespace: namespace, Name: workload}, results, l.world.now)
}

func (l *LostPods) uncontrolled(_ context.Context, namespace string) ([]*corev1.Pod, error) {
	var found []*corev1.Pod
	for _, pod := range List[*corev1.Pod](l.view) {
		if _, ok := pod.Labels[l.label]; ok && pod.Namespace == namespace && metav1.GetControllerOfNoCopy(pod) == nil {
			found = append(found, pod)
		}
	}
	return found, nil
}

// ListLabelled returns every object of the kind that has the label and whose controller has the UID.
func ListLabelled[T action.Object](v *View, owner types.UID, label string) []T {
	var labelled []T
	for _, o := range ListOwned[T](v, owner) {
		if _, ok := o.GetLabels()[label]; ok {
			labelled = append(labelled, o)
		}
	}
	return labelled
}

var errNotPods = errors.New("only pods are read from the server")

// server reads pods from the world as it is.
type server struct{ world *World }

// Get reads a pod.
func (s server) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return errNotPods
	}
	found := Get[*corev1.Pod](s.world.View(nil), key.Namespace, key.Name)
	if found == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	*pod = *found
	return nil
}

// List reads the pods of a namespace that a selector matches.
func (s server) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return errNotPods
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	for _, pod := range s.world.Pods() {
		if pod.Namespace == o.Namespace && (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(pod.Labels))) {
			pods.Items = append(pods.Items, *pod)
		}
	}
	return nil
}

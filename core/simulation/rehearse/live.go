package rehearse

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// liveOf returns a client of the world as it is, as far as a pass asks the server: it reads pods, and has pod templates
// defaulted by dry runs.
func liveOf(w *cluster.World) client.Client { return live{world: w} }

var (
	errNotPods  = errors.New("only pods are read from the server")
	errNoDryRun = errors.New("only pod templates are written, and by dry runs")
)

type live struct {
	client.Client
	world *cluster.World
}

// Get reads a pod.
func (l live) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return errNotPods
	}
	found := cluster.Get[*corev1.Pod](l.world.View(nil), key.Namespace, key.Name)
	if found == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	*pod = *found
	return nil
}

// List reads the pods of a namespace that a selector matches.
func (l live) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return errNotPods
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	for _, pod := range l.world.Pods() {
		if pod.Namespace == o.Namespace && (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(pod.Labels))) {
			pods.Items = append(pods.Items, *pod)
		}
	}
	return nil
}

// Create defaults a pod template.
func (l live) Create(_ context.Context, o client.Object, options ...client.CreateOption) error {
	template, ok := o.(*corev1.PodTemplate)
	var asked client.CreateOptions
	asked.ApplyOptions(options)
	if !ok || len(asked.DryRun) == 0 {
		return errNoDryRun
	}
	podspec.Default(&template.Template.Spec, podspec.ServerDefault)
	return nil
}

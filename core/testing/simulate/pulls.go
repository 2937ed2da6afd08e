package simulate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// pullActor writes the status of ImagePullJobs and deletes those whose time is over.
const pullActor = "jobs"

// pullTTL is how long a job stays after its end.
const pullTTL = 10 * time.Minute

// ImagePulls are the pulls of the ImagePullJobs of a world.
type ImagePulls struct {
	// Jobs is how many there were.
	Jobs int

	world *World
	fails func(node string, tries int) bool
	tries map[string]int  // of a node
	has   map[string]bool // image and node
}

// PullImages gives the cluster an operator of ImagePullJobs. A job pulls its image on the nodes of the pods that it
// selects, ends after a while, and goes ten minutes later. The function says whether a node fails, by the number of jobs
// that have tried it. No job may be made while another one of its owner pulls its image.
func (w *World) PullImages(fails func(node string, tries int) bool) *ImagePulls {
	p := &ImagePulls{
		world: w,
		fails: fails,
		tries: map[string]int{},
		has:   map[string]bool{},
	}
	w.OnEvent(func(w *World, e cluster.Event) {
		job, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Kind != contract.ImagePullJobKind || e.Type != cluster.Added {
			return
		}
		for _, o := range w.View(nil).Objects(contract.ImagePullJobKind) {
			other := o.(*unstructured.Unstructured)
			if other.GetUID() != job.GetUID() && imageOf(other) == imageOf(job) && !hasEnded(other) && other.GetDeletionTimestamp() == nil {
				w.Violate("job %s is made while job %s pulls image %s", job.GetName(), other.GetName(), imageOf(job))
			}
		}
		p.Jobs++
		w.After(w.Delay(30*time.Second), func() { p.end(job) })
	})
	return p
}

// end pulls on the nodes of the job and ends it.
func (p *ImagePulls) end(job *unstructured.Unstructured) {
	nodes, succeeded := p.nodes(job), int64(0)
	for _, node := range nodes {
		p.tries[node]++
		if !p.fails(node, p.tries[node]) {
			p.has[imageOf(job)+" "+node] = true
			succeeded++
		}
	}
	p.world.Tell(pullActor, "job %s has pulled on %d of %d nodes", job.GetName(), succeeded, len(nodes))
	_ = cluster.Change(p.world, pullActor, "status", job, func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{
			"desired":        int64(len(nodes)),
			"succeeded":      succeeded,
			"failed":         int64(len(nodes)) - succeeded,
			"completionTime": p.world.Now().UTC().Format(time.RFC3339),
		}
	})
	p.world.After(pullTTL, func() { _ = p.world.Delete(pullActor, job) })
}

// nodes are those that run pods which the job selects.
func (p *ImagePulls) nodes(job *unstructured.Unstructured) []string {
	var spec contract.ImagePullJobSpec
	fields, _ := job.Object["spec"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
		p.world.Violate("job %s cannot be read: %v", job.GetName(), err)
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.PodSelector)
	if err != nil {
		p.world.Violate("job %s selects no pods: %v", job.GetName(), err)
		return nil
	}
	var nodes []string
	for _, pod := range p.world.Pods() {
		if node := pod.Spec.NodeName; node != "" && selector.Matches(labels.Set(pod.Labels)) && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// Lacking are the nodes of pods that run, lack the label with the value, and the image.
func (p *ImagePulls) Lacking(image, label, value string) []string {
	var nodes []string
	for _, pod := range p.world.Pods() {
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if !ended && pod.DeletionTimestamp == nil && pod.Labels[label] != value && !p.has[image+" "+pod.Spec.NodeName] {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	return nodes
}

func imageOf(job *unstructured.Unstructured) string {
	image, _, _ := unstructured.NestedString(job.Object, "spec", "image")
	return image
}

func hasEnded(job *unstructured.Unstructured) bool {
	completed, _, _ := unstructured.NestedString(job.Object, "status", "completionTime")
	return completed != ""
}

package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	imageBefore, imageAfter, imageLast = "app:v1", "app:v2", "app:v3"
	name                               = "web"

	pollInterval = 10 * time.Millisecond
	patience     = 10 * time.Minute
	// settling is how long after a load late writes still count.
	settling = time.Second
	// idleTime is how long the operator is measured while it has nothing to do.
	idleTime = 30 * time.Second
	// startTime is how long before that the operator has to read what there is, such as thousands of nodes.
	startTime = 10 * time.Second
)

func podLabels() map[string]string { return map[string]string{"app": name} }

func podSpec(image string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels()}, Spec: podSpec(imageBefore)}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// controller is the controller that is measured.
type controller struct {
	process
	userAgent string // how it begins
}

// load is one change of one workload.
type load struct {
	name       string
	controller controller
	workload   client.Object
	change     func() // of the workload's spec
	done       func(*corev1.Pod) bool
	pods       int         // that are done in the end, and all there are
	reported   func() bool // by the workload's status
	budget     int         // pods that may be out of service meanwhile; 0 where the load is no rollout
}

// create creates an empty workload in a namespace of its own, whose pods it watches.
func (b *bench) create(ctx context.Context, w workload) (*observed, error) {
	space, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	w.SetNamespace(space)
	w.SetUID("")
	w.SetResourceVersion("")
	// The operator's webhooks answer a moment after it is ready.
	err = until(ctx, "the workload to be accepted", func() (bool, error) {
		return b.client.Create(ctx, w.Object) == nil, nil
	})
	if err != nil {
		return nil, err
	}
	if err := b.reported(ctx, w.Object, w.ready); err != nil {
		return nil, err
	}
	pods := b.watch(ctx, space)
	return pods, b.followStatus(ctx, w, pods)
}

// run creates an empty workload and puts the loads on it.
func (b *bench) run(ctx context.Context, w workload, loads []load) ([]Row, error) {
	pods, err := b.create(ctx, w)
	if err != nil {
		return nil, err
	}
	return b.put(ctx, loads, pods)
}

// put puts loads on a workload with these pods, one after the other.
func (b *bench) put(ctx context.Context, loads []load, pods *observed) ([]Row, error) {
	var rows []Row
	for _, l := range loads {
		b.tell("%s", l.name)
		row, err := b.measure(ctx, l, pods)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", l.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// resize scales a workload without measuring that.
func (b *bench) resize(ctx context.Context, w workload, pods *observed, replicas int) error {
	before := w.DeepCopyObject().(client.Object)
	w.scale(int32(replicas)) //nolint:gosec // a number of pods
	if err := b.client.Patch(ctx, w.Object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("scale the workload: %w", err)
	}
	all := load{pods: replicas, done: isReady}
	if err := until(ctx, "the pods", func() (bool, error) { return all.complete(pods), nil }); err != nil {
		return err
	}
	return b.reported(ctx, w.Object, w.ready)
}

// watch observes the pods of a namespace until ctx ends.
func (b *bench) watch(ctx context.Context, namespace string) *observed {
	pods := newObserved(time.Now)
	source := cache.NewListWatchFromClient(b.kube.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &corev1.Pod{},
		Handler:       pods.handler(),
	})
	go informer.RunWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	pods.Store = store
	return pods
}

func (b *bench) measure(ctx context.Context, l load, pods *observed) (Row, error) {
	row := Row{Load: l.name, Pods: b.Pods, Controller: l.controller.name}
	if err := b.audit.Skip(); err != nil {
		return row, err
	}
	meter, err := startMeter(ctx, b.processes())
	if err != nil {
		return row, err
	}
	before := l.workload.DeepCopyObject().(client.Object)
	l.change()
	pods.begin(l.pods)
	began := time.Now()
	if err := b.client.Patch(ctx, l.workload, client.MergeFrom(before)); err != nil {
		return row, fmt.Errorf("change the workload: %w", err)
	}
	if err := until(ctx, "the pods", func() (bool, error) { return l.complete(pods), nil }); err != nil {
		return row, err
	}
	row.Done = time.Since(began).Seconds()
	row.observe(pods, l.budget)
	if err := b.reported(ctx, l.workload, l.reported); err != nil {
		return row, err
	}
	time.Sleep(settling)
	if row.Costs, err = meter.cost(); err != nil {
		return row, err
	}
	err = b.count(&row, began, l.controller)
	return row, err
}

// count adds the controller's requests since the last look at the audit log to the row.
func (b *bench) count(row *Row, began time.Time, who controller) error {
	requests, err := b.audit.Read(isAboutObjects)
	if err != nil {
		return err
	}
	row.account(onlyWrites(requests), began, who.userAgent)
	row.Reads = reads(requests, who.userAgent)
	return nil
}

// complete reports whether the load is done for all pods.
func (l load) complete(pods cache.Store) bool {
	all := pods.List()
	if len(all) != l.pods {
		return false
	}
	for _, o := range all {
		if pod, ok := o.(*corev1.Pod); !ok || !l.done(pod) {
			return false
		}
	}
	return true
}

// reported waits until the workload's status shows the end of the load.
func (b *bench) reported(ctx context.Context, workload client.Object, end func() bool) error {
	return until(ctx, "the workload's status", func() (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(workload), workload)
		return err == nil && end(), err
	})
}

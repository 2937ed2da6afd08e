package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

const (
	imageBefore, imageAfter = "app:v1", "app:v2"
	name                    = "web"

	pollInterval = 10 * time.Millisecond
	patience     = 10 * time.Minute
	// settling is how long after a load what comes too late still counts.
	settling = time.Second
	// idleTime is how long the operator is watched while it has nothing to do.
	idleTime = 20 * time.Second
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

// controller is who is measured.
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
}

// replicaSet scales a ReplicaSet up and down.
func (b *bench) replicaSet(ctx context.Context) ([]Row, error) {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: podLabels()}, Template: template()},
	}
	who := controller{b.controllerManager, "replicaset-controller"}
	ready := func() bool {
		return set.Status.ObservedGeneration == set.Generation && set.Status.ReadyReplicas == *set.Spec.Replicas && set.Status.Replicas == *set.Spec.Replicas
	}
	return b.run(ctx, set, ready, []load{
		{"ReplicaSet scale-up", who, set, func() { set.Spec.Replicas = new(int32(b.Pods)) }, isReady, b.Pods, ready},
		{"ReplicaSet scale-down", who, set, func() { set.Spec.Replicas = new(int32(0)) }, nil, 0, ready},
	})
}

// cloneSet scales a CloneSet up, updates it in place, and scales it down.
func (b *bench) cloneSet(ctx context.Context) ([]Row, error) {
	set := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.CloneSetSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: podLabels()}, Template: template(),
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: v1beta1.InPlaceIfPossible, MaxUnavailable: new(intstr.FromString("10%")),
			}},
		},
	}
	who := controller{b.operator.process, operatorName + "/"}
	ready := func() bool {
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.Replicas == *set.Spec.Replicas && s.UpdatedReadyReplicas == *set.Spec.Replicas
	}
	updated := func(pod *corev1.Pod) bool {
		reported := pod.Status.ContainerStatuses
		return isReady(pod) && pod.Spec.Containers[0].Image == imageAfter && len(reported) == 1 && reported[0].Image == imageAfter
	}
	return b.run(ctx, set, ready, []load{
		{"CloneSet scale-up", who, set, func() { set.Spec.Replicas = new(int32(b.Pods)) }, isReady, b.Pods, ready},
		{"CloneSet in place", who, set, func() { set.Spec.Template.Spec.Containers[0].Image = imageAfter }, updated, b.Pods, ready},
		{"CloneSet scale-down", who, set, func() { set.Spec.Replicas = new(int32(0)) }, nil, 0, ready},
	})
}

// run creates an empty workload in a namespace of its own and puts the loads on it.
func (b *bench) run(ctx context.Context, workload client.Object, ready func() bool, loads []load) ([]Row, error) {
	space, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	workload.SetNamespace(space)
	// The operator's webhooks answer a moment after it is ready.
	err = await(ctx, "the workload to be accepted", func() (bool, error) {
		return b.client.Create(ctx, workload) == nil, nil
	})
	if err != nil {
		return nil, err
	}
	if err := b.reported(ctx, workload, ready); err != nil {
		return nil, err
	}
	pods := b.watch(ctx, space)
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

// watch keeps the pods of a namespace in a store until ctx ends.
func (b *bench) watch(ctx context.Context, namespace string) cache.Store {
	source := cache.NewListWatchFromClient(b.kube.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{},
	})
	go informer.RunWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	return store
}

func (b *bench) measure(ctx context.Context, l load, pods cache.Store) (Row, error) {
	row := Row{Load: l.name, Pods: b.Pods, Controller: l.controller.name}
	if err := b.audit.skip(); err != nil {
		return row, err
	}
	meter, err := startMeter(b.processes())
	if err != nil {
		return row, err
	}
	before := l.workload.DeepCopyObject().(client.Object)
	l.change()
	began := time.Now()
	if err := b.client.Patch(ctx, l.workload, client.MergeFrom(before)); err != nil {
		return row, fmt.Errorf("change the workload: %w", err)
	}
	if err := await(ctx, "the pods", func() (bool, error) { return l.complete(pods), nil }); err != nil {
		return row, err
	}
	row.Done = time.Since(began).Seconds()
	if err := b.reported(ctx, l.workload, l.reported); err != nil {
		return row, err
	}
	time.Sleep(settling)
	if row.Costs, err = meter.cost(); err != nil {
		return row, err
	}
	writes, err := b.audit.writes()
	if err != nil {
		return row, err
	}
	row.account(writes, began, l.controller.userAgent)
	return row, nil
}

// complete says whether all pods are as the load wants them.
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

// reported waits until the workload's status tells of the end.
func (b *bench) reported(ctx context.Context, workload client.Object, end func() bool) error {
	return await(ctx, "the workload's status", func() (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(workload), workload)
		return err == nil && end(), err
	})
}

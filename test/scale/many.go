package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	budget "github.com/flotilla-project/flotilla/budget/api/v1beta1"
	spread "github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// manyPerNamespace is how many of many objects share a namespace.
const manyPerNamespace = 100

// many are as many ReplicaSets as Pods, each with labels of its own. An object of the feature belongs to each.
type many struct {
	*bench
	spaces []string
	pods   *observed // of all namespaces
}

// makeMany makes the ReplicaSets, with so many pods each.
func (b *bench) makeMany(ctx context.Context, replicas int32) (*many, error) {
	m := &many{bench: b}
	for range (b.Pods + manyPerNamespace - 1) / manyPerNamespace {
		space, err := b.namespace(ctx)
		if err != nil {
			return nil, err
		}
		m.spaces = append(m.spaces, space)
	}
	m.pods = b.watch(ctx, metav1.NamespaceAll)
	err := forEach(ctx, b.Pods, func(ctx context.Context, i int) error {
		set := &appsv1.ReplicaSet{
			ObjectMeta: m.meta(i),
			Spec: appsv1.ReplicaSetSpec{
				Replicas: &replicas,
				Selector: m.selector(i),
				Template: template(),
			},
		}
		set.Spec.Template.Labels = m.selector(i).MatchLabels
		return b.client.Create(ctx, set)
	})
	if err != nil {
		return nil, fmt.Errorf("create a ReplicaSet: %w", err)
	}
	return m, m.allReady(ctx, b.Pods*int(replicas))
}

func (m *many) meta(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.spaces[i/manyPerNamespace], Name: podName(i)}
}

func (m *many) selector(i int) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": podName(i)}}
}

func (m *many) allReady(ctx context.Context, pods int) error {
	all := load{pods: pods, done: isReady}
	return until(ctx, "the pods", func() (bool, error) { return all.complete(m.pods), nil })
}

// each creates an object for each ReplicaSet, and waits until all are as they have to be: done counts them in a list.
func (m *many) each(ctx context.Context, made func(i int) client.Object, list client.ObjectList, done func() int) (began time.Time, err error) {
	began = time.Now()
	if err := forEach(ctx, m.Pods, func(ctx context.Context, i int) error { return m.accepted(ctx, made(i)) }); err != nil {
		return began, err
	}
	return began, m.every(ctx, list, done)
}

// every waits until done counts all objects of a list.
func (m *many) every(ctx context.Context, list client.ObjectList, done func() int) error {
	return awaitEvery(ctx, slow, "all objects", func() (bool, error) {
		err := m.client.List(ctx, list)
		return err == nil && done() == m.Pods, err
	})
}

// idleAmong measures the operator while there is nothing to do for these objects.
func (m *many) idleAmong(ctx context.Context, objects string) ([]Row, error) {
	rows, err := m.idle(ctx)
	for i := range rows {
		rows[i].Load = fmt.Sprintf("idle among %d %s", m.Pods, objects)
	}
	return rows, err
}

// podsOfBudget is how many pods each of many budgets covers. Of a single one, a budget would record no grant.
const podsOfBudget = 2

// manyBudgets measures as many budgets as Pods, of two pods each: from their creation until all cover their pods, the eviction
// of one pod of each, and the idle operator.
func (b *bench) manyBudgets(ctx context.Context) ([]Row, error) {
	m, err := b.makeMany(ctx, podsOfBudget)
	if err != nil {
		return nil, err
	}
	made := func(i int) client.Object {
		pub := &budget.PodUnavailableBudget{ObjectMeta: m.meta(i)}
		pub.Spec.Selector = m.selector(i)
		pub.Spec.MaxUnavailable = new(intstr.FromInt32(1))
		return pub
	}
	list := &budget.PodUnavailableBudgetList{}
	full := func() int {
		return count(list.Items, func(p *budget.PodUnavailableBudget) bool {
			return p.Status.ObservedGeneration == p.Generation && p.Status.CurrentAvailable == podsOfBudget && len(p.Status.DisruptedPods) == 0
		})
	}
	row := Row{Load: "PodUnavailableBudgets of two pods each", Pods: b.Pods, Of: budgets}
	row, err = b.cost(ctx, row, b.ofOperator(""), func() (time.Time, error) {
		began, err := m.each(ctx, made, list, full)
		if err != nil {
			return began, err
		}
		all := load{pods: podsOfBudget * b.Pods, done: isMarked}
		return began, until(ctx, "the marks of the pods", func() (bool, error) { return all.complete(m.pods), nil })
	})
	if err != nil {
		return nil, err
	}
	rows := []Row{row}
	row = Row{Load: "an eviction within each PodUnavailableBudget", Pods: b.Pods, Of: budgets}
	row, err = b.cost(ctx, row, b.ofOperator(""), func() (time.Time, error) {
		m.pods.begin(podsOfBudget * b.Pods)
		began := time.Now()
		for _, space := range m.spaces {
			var some []string
			for ofBudget := range slices.Chunk(namesIn(m.pods, space), podsOfBudget) { // the names begin with that of the ReplicaSet
				some = append(some, ofBudget[0])
			}
			if err := b.evict(ctx, space, some); err != nil {
				return began, err
			}
		}
		return began, m.every(ctx, list, full)
	})
	if err != nil {
		return rows, err
	}
	row.observe(m.pods, 0)
	idle, err := m.idleAmong(ctx, "PodUnavailableBudgets")
	return append(append(rows, row), idle...), err
}

// manySpreads measures as many WorkloadSpreads as Pods: from their creation until all have a status, the creation of one pod
// in each, and the idle operator.
func (b *bench) manySpreads(ctx context.Context) ([]Row, error) {
	m, err := b.makeMany(ctx, 0)
	if err != nil {
		return nil, err
	}
	made := func(i int) client.Object { return halvesOf(&appsv1.ReplicaSet{ObjectMeta: m.meta(i)}) }
	list := &spread.WorkloadSpreadList{}
	pods := int32(0)
	counted := func() int {
		return count(list.Items, func(s *spread.WorkloadSpread) bool {
			n := int32(0)
			for i := range s.Status.SubsetStatuses {
				n += s.Status.SubsetStatuses[i].Replicas
			}
			return s.Status.ObservedGeneration == s.Generation && n == pods
		})
	}
	row := Row{Load: "WorkloadSpreads of a ReplicaSet each", Pods: b.Pods, Of: "workloadspreads"}
	row, err = b.cost(ctx, row, b.ofOperator(""), func() (time.Time, error) {
		return m.each(ctx, made, list, counted)
	})
	if err != nil {
		return nil, err
	}
	rows := []Row{row}
	row = Row{Load: "a pod in each WorkloadSpread", Pods: b.Pods, Of: "workloadspreads"}
	row, err = b.cost(ctx, row, b.ofOperator(""), func() (time.Time, error) {
		m.pods.begin(b.Pods)
		pods = 1
		began := time.Now()
		err := forEach(ctx, b.Pods, func(ctx context.Context, i int) error {
			return b.client.Patch(ctx, &appsv1.ReplicaSet{ObjectMeta: m.meta(i)}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)))
		})
		if err != nil {
			return began, fmt.Errorf("scale a ReplicaSet: %w", err)
		}
		if err := m.allReady(ctx, b.Pods); err != nil {
			return began, err
		}
		return began, m.every(ctx, list, counted)
	})
	if err != nil {
		return rows, err
	}
	row.observe(m.pods, 0)
	idle, err := m.idleAmong(ctx, "WorkloadSpreads")
	return append(append(rows, row), idle...), err
}

// namesIn returns the names of the pods of a namespace.
func namesIn(pods *observed, space string) []string {
	var names []string
	for _, o := range pods.List() {
		if pod, ok := o.(*corev1.Pod); ok && pod.Namespace == space {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

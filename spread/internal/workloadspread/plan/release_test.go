package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

const replaced = v1beta1.ReplacedCostAnnotation

// written is the pod after all actions on it.
func written(pod *corev1.Pod, actions ...action.Action) *corev1.Pod {
	after := pod.DeepCopy()
	for i := range actions {
		if actions[i].Object.GetName() != pod.Name {
			continue
		}
		for _, patch := range actions[i].Patches {
			meta, _ := patch.Body["metadata"].(map[string]any)
			changes, _ := meta["annotations"].(map[string]any)
			for key, value := range changes {
				if text, ok := value.(string); ok {
					metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, text)
				} else {
					delete(after.Annotations, key)
				}
			}
		}
	}
	return after
}

func actionsOf(p action.Plan) (all []action.Action) {
	for _, step := range p.Steps {
		all = append(all, step.Actions...)
	}
	return all
}

// Pods of a spread that is gone have the deletion cost that they had before it, or none, and keep their subset.
func TestAGoneSpreadTakesItsCostsAlong(t *testing.T) {
	released := func(subset string) string { return fmt.Sprintf(`{"name":"web","subset":"%s","released":true}`, subset) }
	for name, c := range map[string]struct {
		options []gen.PodOption
		want    map[string]string // nil for no write
	}{
		"its cost":                  {[]gen.PodOption{member("a"), gen.DeletionCost("200")}, map[string]string{v1beta1.MatchedAnnotation: released("a")}},
		"beyond the limit":          {[]gen.PodOption{member("b"), gen.DeletionCost("-200")}, map[string]string{v1beta1.MatchedAnnotation: released("b")}},
		"a cost from before":        {[]gen.PodOption{member("a"), gen.DeletionCost("200"), gen.Annotation(replaced, "7")}, map[string]string{v1beta1.MatchedAnnotation: released("a"), contract.PodDeletionCostAnnotation: "7"}},
		"a cost set since":          {[]gen.PodOption{member("a"), gen.DeletionCost("7")}, map[string]string{v1beta1.MatchedAnnotation: released("a"), contract.PodDeletionCostAnnotation: "7"}},
		"no cost":                   {[]gen.PodOption{member("a")}, map[string]string{v1beta1.MatchedAnnotation: released("a")}},
		"in no subset":              {[]gen.PodOption{member(""), gen.DeletionCost("-300")}, map[string]string{}},
		"in no subset, from before": {[]gen.PodOption{member(""), gen.DeletionCost("-300"), gen.Annotation(replaced, "-7")}, map[string]string{contract.PodDeletionCostAnnotation: "-7"}},
		"released, cost set since":  {[]gen.PodOption{gen.Annotation(v1beta1.MatchedAnnotation, released("a")), gen.DeletionCost("200")}, nil},
		"terminating":               {[]gen.PodOption{member("a"), gen.DeletionCost("200"), gen.Terminating()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := gen.Pod("p", c.options...)
			p := Release([]*corev1.Pod{pod}, nil, gen.Epoch())
			require.Equal(t, c.want == nil, p.Empty())
			if c.want == nil {
				return
			}
			after := written(pod, actionsOf(p)...)
			for _, key := range []string{v1beta1.MatchedAnnotation, contract.PodDeletionCostAnnotation, replaced} {
				want, has := c.want[key]
				got, ok := after.Annotations[key]
				assert.Equal(t, want, got, key)
				assert.Equal(t, has, ok, key)
			}
			again := Release([]*corev1.Pod{after}, nil, gen.Epoch())
			assert.True(t, again.Empty(), "once")
		})
	}
}

// Pods that a spread has no more lose their costs while it lives, unless somebody has changed them since.
func TestPodsThatAreLeftAreReleased(t *testing.T) {
	s := snapshot(given("a b"))
	s.Left = []*corev1.Pod{gen.Pod("p", member("a"), gen.DeletionCost("200"))}
	actions := actionsOf(compute(t, s).Plan)
	require.Len(t, actions, 1)
	assert.False(t, actions[0].Patches[0].AnyVersion)
	assert.NotContains(t, written(s.Left[0], actions...).Annotations, contract.PodDeletionCostAnnotation)
}

// costWorld is pods with costs of users, of which a spread with changing subsets has some, until it is gone.
type costWorld struct {
	*rand.Rand
	pods  map[string]*corev1.Pod
	users map[string]string // the cost that a user has set while no spread had the pod, or that is none of a spread's; empty for none
}

func (w *costWorld) each(f func(pod *corev1.Pod) *corev1.Pod) {
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		w.pods[name] = f(w.pods[name])
	}
}

// add creates a pod, that admission puts into a subset, or one that the spread has to take in.
func (w *costWorld) add(spread *v1beta1.WorkloadSpread) {
	pod := gen.Pod(fmt.Sprintf("p%02d", len(w.pods)), gen.OnNode([]string{"node-a", "node-b", "node-z"}[w.IntN(3)]), gen.Created(gen.Epoch()))
	if w.IntN(2) == 0 {
		w.users[pod.Name] = strconv.Itoa(100*w.IntN(3) + 50*w.IntN(2))
		gen.DeletionCost(w.users[pod.Name])(pod)
	}
	if spread != nil && w.IntN(2) == 0 {
		i := w.IntN(len(spread.Spec.Subsets))
		member(spread.Spec.Subsets[i].Name)(pod)
		subsets.SetCost(pod, spread, i)
	}
	w.pods[pod.Name] = pod
}

// edit has a user set the cost of a pod, or take it off.
func (w *costWorld) edit(alive bool) {
	names := slices.Sorted(maps.Keys(w.pods))
	if len(names) == 0 {
		return
	}
	pod := w.pods[names[w.IntN(len(names))]].DeepCopy()
	value := strconv.Itoa(100*w.IntN(6) + 7)
	if match, ok := subsets.Read(pod); !alive && (!ok || match.Released) {
		value = strconv.Itoa(100 * w.IntN(6)) // whatever it is
	}
	gen.DeletionCost(value)(pod)
	w.users[pod.Name], w.pods[pod.Name] = value, pod
}

// write does some of the actions: the operator may be killed.
func (w *costWorld) write(actions []action.Action) {
	actions = actions[:w.IntN(len(actions)+1)]
	w.each(func(pod *corev1.Pod) *corev1.Pod { return written(pod, actions...) })
}

func (w *costWorld) list() (all []*corev1.Pod) {
	w.each(func(pod *corev1.Pod) *corev1.Pod { all = append(all, pod); return pod })
	return all
}

// Whatever spreads, users and a killed operator have done: when the spread is gone each pod has the cost that its user wants.
func TestCostsOfUsersOutliveSpreads(t *testing.T) {
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		t.Helper()
		w := &costWorld{rand.New(rand.NewPCG(seed, 11)), map[string]*corev1.Pod{}, map[string]string{}}
		var spread *v1beta1.WorkloadSpread
		for range 40 {
			switch n := w.IntN(8); {
			case n == 0:
				spread = nil
			case n == 1:
				spread = given([]string{"a b", "a=1 b=1 c", "b a", "a=0 c"}[w.IntN(4)])
			case n == 2:
				w.add(spread)
			case n == 3:
				w.edit(spread != nil)
			case spread == nil:
				w.write(actionsOf(Release(w.list(), nil, gen.Epoch())))
			default:
				w.write(actionsOf(Compute(snapshot(spread, w.list()...)).Plan))
			}
		}
		for _, pod := range w.list() {
			after := written(pod, actionsOf(Release(w.list(), nil, gen.Epoch()))...)
			assert.Equal(t, w.users[pod.Name], after.Annotations[contract.PodDeletionCostAnnotation], "%s: %v", pod.Name, pod.Annotations)
			assert.NotContains(t, after.Annotations, replaced)
		}
	})
}

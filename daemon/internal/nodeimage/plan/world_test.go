package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

// keeper is the operator of one node's NodeImage, with what it knows of jobs and secrets.
type keeper struct {
	jobs    map[Job]bool
	secrets map[types.NamespacedName]bool
	seen    Snapshot
	todo    Plan
}

// Plan implements simulate.Planner.
func (k *keeper) Plan(v *simulate.View, now time.Time, _ uint64) ([]action.Step, time.Duration) {
	k.seen = Snapshot{
		Name: "n1", Node: simulate.Get[*corev1.Node](v, "", "n1"), Image: simulate.Get[*v1beta1.NodeImage](v, "", "n1"),
		Jobs: k.jobs, Secrets: k.secrets, CreationDelay: delay, Now: now,
	}
	switch {
	case k.seen.Image != nil:
		k.seen.Refusals = v.Refusals(k.seen.Image, nil, 0)
	case k.seen.Node != nil:
		k.seen.Refusals = v.Refusals(k.seen.Node, nil, 0)
	}
	k.todo = Compute(k.seen)
	return k.todo.Steps, k.todo.RequeueAfter
}

// Report implements simulate.Reporter.
func (k *keeper) Report(action.Failures) []action.Step {
	if k.todo.Status == nil || equality.Semantic.DeepEqual(k.seen.Image.Status, *k.todo.Status) {
		return nil
	}
	after := k.seen.Image.DeepCopy()
	after.Status = *k.todo.Status
	var body map[string]any
	patch, err := client.MergeFrom(k.seen.Image).Data(after)
	if err == nil {
		err = json.Unmarshal(patch, &body)
	}
	if err != nil {
		panic(err)
	}
	return []action.Step{{Name: "status", Actions: []action.Action{{
		Verb: action.PatchStatus, Object: k.seen.Image, Reason: "Status",
		Patches: []action.Patch{{Subresource: "status", Type: types.MergePatchType, Body: body}},
	}}}}
}

// life is what happens on a node and to what is asked of it.
type life struct {
	dice
	w      *simulate.World
	k      *keeper
	rounds int64
	nodes  int
	made   map[types.UID]int // NodeImages by node
	bereft map[types.UID]int // of them deleted by others
}

func startLife(t testing.TB, seed uint64) (*simulate.World, simulate.Planner) {
	t.Helper()
	w := simulate.New(simulate.Options{Seed: seed, DetectMutation: true})
	l := &life{
		dice: dice{rand.New(rand.NewPCG(seed, 3))}, w: w, made: map[types.UID]int{}, bereft: map[types.UID]int{},
		k: &keeper{jobs: map[Job]bool{}, secrets: map[types.NamespacedName]bool{}},
	}
	for i := range 3 {
		l.k.jobs[jobNamed(fmt.Sprint("job-", i), "uid-0")] = i > 0
		l.k.jobs[jobNamed(fmt.Sprint("job-", i), "uid-1")] = false
		l.k.secrets[types.NamespacedName{Name: fmt.Sprint("secret-", i)}] = i > 0
	}
	w.OnEvent(l.watch)
	l.addNode()
	for range 3 + l.IntN(6) {
		w.EditAfter(time.Duration(l.IntN(1800))*time.Second, []func(){
			l.ask, l.ask, l.ask, l.drop, l.relabel, l.endJob, l.removeSecret, l.removeImage, l.replaceNode,
		}[l.IntN(9)])
	}
	return w, l.k
}

func (l *life) addNode() {
	l.nodes++
	l.w.Add(node(func(n *corev1.Node) {
		n.UID = types.UID(fmt.Sprint("node-", l.nodes))
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(l.w.Now())
	}))
}

// watch has the agent answer a change of the spec, and judges that NodeImages are made once for a node.
func (l *life) watch(w *simulate.World, e simulate.Event) {
	image, ok := e.Object.(*v1beta1.NodeImage)
	if !ok {
		return
	}
	for _, owner := range image.OwnerReferences {
		switch {
		case e.Type == simulate.Added:
			l.made[owner.UID]++
			if l.made[owner.UID] > 1+l.bereft[owner.UID] {
				w.Violate("NodeImage %s is made again for %s", image.Name, owner.UID)
			}
		case e.Type == simulate.Deleted && e.Actor != simulate.OperatorActor:
			l.bereft[owner.UID]++
		case e.Type == simulate.Deleted:
			if n := simulate.Get[*corev1.Node](w.View(nil), "", owner.Name); n != nil && n.UID == owner.UID {
				w.Violate("NodeImage %s is taken from its node", image.Name)
			}
		}
	}
	if old, _ := e.Old.(*v1beta1.NodeImage); old != nil && image.Generation != old.Generation && e.Type == simulate.Modified {
		if e.Actor == simulate.OperatorActor {
			l.judgeDropped(old, image)
		}
		w.After(time.Duration(1+l.IntN(30))*time.Second, l.agent)
	}
}

// judgeDropped judges that the operator asks for nothing by itself.
func (l *life) judgeDropped(old, image *v1beta1.NodeImage) {
	was := tally.Wanted(&old.Spec)
	for key := range tally.Wanted(&image.Spec) {
		if !was[key] {
			l.w.Violate("%v was asked for by nobody", key)
		}
	}
}

func (l *life) change(subresource string, edit func(*v1beta1.NodeImage)) {
	if image := simulate.Get[*v1beta1.NodeImage](l.w.View(nil), "", "n1"); image != nil {
		_ = simulate.Change(l.w, simulate.UserActor, subresource, image, edit) // it refuses nothing that is written here
	}
}

// agent reports pulls: some begin, some end, and about some it is silent for ever.
func (l *life) agent() {
	again := false
	l.change("status", func(image *v1beta1.NodeImage) {
		for name, spec := range image.Spec.Images {
			var states []v1beta1.ImageTagStatus
			before := completions(image)
			for _, old := range image.Status.ImageStatuses[name].Tags {
				if _, ended := before[tally.Key{Image: name, Tag: old.Tag, Version: old.Version}]; ended {
					states = append(states, old)
				}
			}
			for _, tag := range spec.Tags {
				_, ended := before[tally.Key{Image: name, Tag: tag.Tag, Version: tag.Version}]
				if ended || tag.Version%4 == 0 {
					continue
				}
				s := v1beta1.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: v1beta1.ImagePulling}
				if l.once(2) {
					s.Phase, s.CompletionTime = v1beta1.ImageSucceeded, new(metav1.NewTime(l.w.Now().Truncate(time.Second)))
				}
				again = again || s.CompletionTime == nil
				states = append(states, s)
			}
			if len(states) > 0 {
				setStates(&image.Status, name, states)
			}
		}
		tally.Count(image)
	})
	if again {
		l.w.After(20*time.Second, l.agent)
	}
}

// ask asks for one more tag, or another version of one.
func (l *life) ask() {
	l.change("", func(image *v1beta1.NodeImage) {
		l.rounds++
		t := l.tag(fmt.Sprint(l.IntN(3)))
		t.CreatedAt, t.Version = new(metav1.NewTime(l.w.Now().Truncate(time.Second))), l.rounds
		name := []string{"nginx", "redis"}[l.IntN(2)]
		spec := image.Spec.Images[name]
		spec.Tags = append(tagsBut(spec.Tags, t.Tag), t)
		if l.once(2) {
			spec.PullSecrets = []v1beta1.SecretReference{{Name: fmt.Sprint("secret-", l.IntN(3))}}
		}
		if image.Spec.Images == nil {
			image.Spec.Images = map[string]v1beta1.ImageSpec{}
		}
		image.Spec.Images[name] = spec
	})
}

func tagsBut(tags []v1beta1.ImageTagSpec, name string) (others []v1beta1.ImageTagSpec) {
	for _, t := range tags {
		if t.Tag != name {
			others = append(others, t)
		}
	}
	return others
}

func (l *life) drop() {
	l.change("", func(image *v1beta1.NodeImage) { delete(image.Spec.Images, "nginx") })
}

func (l *life) endJob() { l.k.jobs[jobNamed("job-1", "uid-0")] = false }

func (l *life) removeSecret() { l.k.secrets[types.NamespacedName{Name: "secret-1"}] = false }

func (l *life) removeImage() {
	if image := simulate.Get[*v1beta1.NodeImage](l.w.View(nil), "", "n1"); image != nil {
		_ = l.w.Delete(simulate.UserActor, image)
	}
}

func (l *life) relabel() {
	if n := simulate.Get[*corev1.Node](l.w.View(nil), "", "n1"); n != nil {
		_ = simulate.Change(l.w, simulate.UserActor, "", n, func(n *corev1.Node) { n.Labels = map[string]string{"zone": fmt.Sprint(l.IntN(9))} })
	}
}

// replaceNode removes the node. Another one of its name comes a while later, or never.
func (l *life) replaceNode() {
	if n := simulate.Get[*corev1.Node](l.w.View(nil), "", "n1"); n != nil {
		_ = l.w.Delete(simulate.UserActor, n)
		if !l.once(3) {
			l.w.After(time.Duration(l.IntN(100))*time.Second, l.addNode)
		}
	}
}

// unarrived returns what in the end is not as the node wants it, and what was asked for and has no end. That the plan
// wants nothing more is judged by the walk.
func unarrived(w *simulate.World) (problems []string) {
	v := w.View(nil)
	n, image := simulate.Get[*corev1.Node](v, "", "n1"), simulate.Get[*v1beta1.NodeImage](v, "", "n1")
	if n == nil || image == nil {
		if n != nil || image != nil {
			problems = append(problems, fmt.Sprintf("node %v, NodeImage %v", n != nil, image != nil))
		}
		return problems
	}
	if !equality.Semantic.DeepEqual(n.Labels, image.Labels) {
		problems = append(problems, fmt.Sprintf("labels %v, not %v", image.Labels, n.Labels))
	}
	if len(image.OwnerReferences) != 1 || image.OwnerReferences[0].UID != n.UID {
		problems = append(problems, "it is not owned by its node")
	}
	for key := range tally.Wanted(&image.Spec) {
		if _, ended := completions(image)[key]; !ended {
			problems = append(problems, fmt.Sprintf("%v has no end", key))
		}
	}
	return problems
}

func walk(t *testing.T, count int, faults func(uint64) simulate.Faults) {
	t.Helper()
	simulate.Walk{
		Count: count, Start: startLife, Faults: faults, Unarrived: unarrived,
		Describe: func(w *simulate.World) string {
			return fmt.Sprintf("%+v", simulate.Get[*v1beta1.NodeImage](w.View(nil), "", "n1"))
		},
	}.Run(t)
}

func TestNodesGetTheirImagesInOrder(t *testing.T) { walk(t, 200, simulate.AllFaults) }

// While writes are refused they are tried now and then, and done within a minute after that.
func TestRefusedWritesAreTriedNowAndThen(t *testing.T) {
	writes := []string{"create Workload", "delete Workload", "patch metadata of Workload", "patch spec of Workload", "patch status of Workload"}
	walk(t, 200, func(seed uint64) simulate.Faults {
		d := dice{rand.New(rand.NewPCG(seed, 4))}
		f := simulate.Faults{Seed: seed}
		for range 1 + d.IntN(3) {
			from := time.Duration(d.IntN(1200)) * time.Second
			f.Refused = append(f.Refused, simulate.Refused{
				Write: writes[d.IntN(len(writes))], Code: simulate.AnswerCodes()[d.IntN(len(simulate.AnswerCodes()))],
				From: from, Until: from + time.Duration(1+d.IntN(15))*time.Minute,
			})
		}
		return f
	})
}

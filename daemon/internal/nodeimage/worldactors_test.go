package nodeimage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

// dice make random worlds.
type dice struct{ *rand.Rand }

func (d dice) once(in int) bool { return d.IntN(in) == 0 }

// tag returns a tag that was asked for now. Some have no time to live, and go with their jobs alone.
func (d dice) tag(name string, version int64, now time.Time) v1beta1.ImageTagSpec {
	t := v1beta1.ImageTagSpec{
		Tag: name, CreatedAt: new(metav1.NewTime(now.Truncate(time.Second))), Version: version,
		PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(1 + d.IntN(1200)))},
	}
	if d.once(2) {
		t.PullPolicy.TTLSecondsAfterFinished = nil
	}
	if d.once(3) {
		t.PullPolicy.ActiveDeadlineSeconds = new(d.Int64N(900))
	}
	for range d.IntN(3) {
		t.OwnerReferences = append(t.OwnerReferences, corev1.ObjectReference{
			APIVersion: "apps.kruise.io/" + []string{"v1beta1", "v1alpha1"}[d.IntN(2)], Kind: []string{"ImagePullJob", "CloneSet"}[d.IntN(2)],
			Namespace: "ns", Name: fmt.Sprint("job-", d.IntN(3)), UID: types.UID(fmt.Sprint("uid-", d.IntN(2))),
		})
	}
	return t
}

// life is what happens on a node and to what is asked of it.
type life struct {
	dice
	w      *simulate.World
	served time.Time // when ImagePullJobs are cached
	silent [][2]time.Time
	rounds int64
	jobs   int
	nodes  int
	made   map[types.UID]int // NodeImages by node
	bereft map[types.UID]int // of them deleted by others
}

func jobNamed(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("job-", i)}
}

func secretNamed(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("secret-", i)}
}

func startLife(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
	t.Helper()
	w := simulate.New(cluster.Options{Seed: seed, DetectMutation: true})
	l := &life{
		dice: dice{rand.New(rand.NewPCG(seed, 3))}, w: w, made: map[types.UID]int{}, bereft: map[types.UID]int{},
	}
	l.served = w.Now().Add(time.Duration(l.IntN(2)*l.IntN(900)) * time.Second)
	for range l.IntN(3) {
		from := w.Now().Add(time.Duration(l.IntN(1800)) * time.Second)
		l.silent = append(l.silent, [2]time.Time{from, from.Add(time.Duration(l.IntN(200)) * time.Second)})
	}
	for i := 1; i < 3; i++ {
		w.Add(metadata(jobKind(), jobNamed(i), "uid-0"))
		w.Add(metadata(secretKind(), secretNamed(i), ""))
	}
	w.OnEvent(l.watch)
	l.addNode()
	for range 4 + l.IntN(8) {
		w.EditAfter(time.Duration(l.IntN(1800))*time.Second, []func(){
			l.ask, l.ask, l.ask, l.startJob, l.startJob, l.startJob, l.drop, l.relabel, l.endJob, l.endJob,
			l.removeSecret, l.removeImage, l.replaceNode,
		}[l.IntN(13)])
	}
	return w, &keeper{t: t, life: l}
}

// away reports whether the server does not answer.
func (l *life) away() bool {
	return slices.ContainsFunc(l.silent, func(s [2]time.Time) bool { return !l.w.Now().Before(s[0]) && l.w.Now().Before(s[1]) })
}

func (l *life) addNode() {
	l.nodes++
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", UID: types.UID(fmt.Sprint("node-", l.nodes)), Labels: map[string]string{"zone": "a"},
	}}
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(l.w.Now()),
	}}
	l.w.Add(n)
}

// watch has the agent answer a change of the spec, and judges that NodeImages are made once for a node.
func (l *life) watch(w *simulate.World, e cluster.Event) {
	image, ok := e.Object.(*v1beta1.NodeImage)
	if !ok {
		return
	}
	for _, owner := range image.OwnerReferences {
		switch {
		case e.Type == cluster.Added:
			l.made[owner.UID]++
			if l.made[owner.UID] > 1+l.bereft[owner.UID] {
				w.Violate("NodeImage %s is made again for %s", image.Name, owner.UID)
			}
		case e.Type == cluster.Deleted && e.Actor != cluster.OperatorActor:
			l.bereft[owner.UID]++
		case e.Type == cluster.Deleted:
			if n := cluster.Get[*corev1.Node](w.View(nil), "", owner.Name); n != nil && n.UID == owner.UID {
				w.Violate("NodeImage %s is taken from its node", image.Name)
			}
		}
	}
	if old, _ := e.Old.(*v1beta1.NodeImage); old != nil && image.Generation != old.Generation && e.Type == cluster.Modified {
		if e.Actor == cluster.OperatorActor {
			l.judgeDropped(old, image)
		}
		w.After(time.Duration(1+l.IntN(30))*time.Second, l.agent)
	}
}

// judgeDropped judges that the operator asks for nothing by itself, and drops nothing that is wanted: a tag that goes has
// no time of creation, has lost its last job or is past its life, an owner that goes is a job that is gone, and so is a secret.
func (l *life) judgeDropped(old, image *v1beta1.NodeImage) {
	was := tally.Wanted(&old.Spec)
	for key := range tally.Wanted(&image.Spec) {
		if !was[key] {
			l.w.Violate("%v was asked for by nobody", key)
		}
	}
	for name, spec := range old.Spec.Images {
		left := image.Spec.Images[name]
		for i := range spec.Tags {
			l.judgeTag(old, name, &spec.Tags[i], left.Tags)
		}
		for _, secret := range spec.PullSecrets {
			key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
			if len(left.Tags) > 0 && !slices.Contains(left.PullSecrets, secret) && uidOf(l.w, secretKind(), key) != "" {
				l.w.Violate("secret %s is there and was dropped", key)
			}
		}
	}
}

func (l *life) judgeTag(old *v1beta1.NodeImage, name string, tag *v1beta1.ImageTagSpec, left []v1beta1.ImageTagSpec) {
	i := slices.IndexFunc(left, func(t v1beta1.ImageTagSpec) bool { return t.Tag == tag.Tag && t.Version == tag.Version })
	if i < 0 {
		end, ttl := endOf(old, name, tag), tag.PullPolicy.TTLSecondsAfterFinished
		over := end != nil && ttl != nil && l.w.Now().Sub(end.Time) >= time.Duration(*ttl)*time.Second
		if !over && tag.CreatedAt != nil && isAlive(l.w, tag) {
			l.w.Violate("%s:%s was dropped", name, tag.Tag)
		}
		return
	}
	for _, owner := range tag.OwnerReferences {
		if !slices.Contains(left[i].OwnerReferences, owner) && exists(l.w, owner) {
			l.w.Violate("%s of %s:%s is there and was dropped", owner.Name, name, tag.Tag)
		}
	}
}

// exists reports whether an owner is there. Of other kinds than jobs nothing is known.
func exists(w *simulate.World, owner corev1.ObjectReference) bool {
	return owner.Kind != jobKind().Kind || uidOf(w, jobKind(), types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}) == owner.UID
}

// isAlive reports whether a tag has an owner that is there, or none at all.
func isAlive(w *simulate.World, tag *v1beta1.ImageTagSpec) bool {
	return len(tag.OwnerReferences) == 0 ||
		slices.ContainsFunc(tag.OwnerReferences, func(owner corev1.ObjectReference) bool { return exists(w, owner) })
}

// endOf returns when the pull of a tag has ended, nil before.
func endOf(image *v1beta1.NodeImage, name string, tag *v1beta1.ImageTagSpec) *metav1.Time {
	states := image.Status.ImageStatuses[name].Tags
	for i := range states {
		if states[i].Tag == tag.Tag && states[i].Version == tag.Version {
			return states[i].CompletionTime
		}
	}
	return nil
}

func hasEnded(image *v1beta1.NodeImage, name string, tag *v1beta1.ImageTagSpec) bool {
	return endOf(image, name, tag) != nil
}

func (l *life) change(subresource string, edit func(*v1beta1.NodeImage)) {
	if image := cluster.Get[*v1beta1.NodeImage](l.w.View(nil), "", "n1"); image != nil {
		_ = cluster.Change(l.w, cluster.UserActor, subresource, image, edit) // it refuses nothing that is written here
	}
}

// agent reports pulls: some begin, some end, and about some it is silent for ever.
func (l *life) agent() {
	again := false
	l.change("status", func(image *v1beta1.NodeImage) {
		statuses := map[string]v1beta1.ImageStatus{}
		for name, spec := range image.Spec.Images {
			var states []v1beta1.ImageTagStatus
			for _, old := range image.Status.ImageStatuses[name].Tags {
				if old.CompletionTime != nil {
					states = append(states, old)
				}
			}
			for i := range spec.Tags {
				tag := &spec.Tags[i]
				if hasEnded(image, name, tag) || tag.Version%4 == 0 {
					continue
				}
				states = slices.DeleteFunc(states, func(s v1beta1.ImageTagStatus) bool { return s.Tag == tag.Tag })
				s := v1beta1.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: v1beta1.ImagePulling}
				if l.once(2) {
					s.Phase, s.CompletionTime = v1beta1.ImageSucceeded, new(metav1.NewTime(l.w.Now().Truncate(time.Second)))
				}
				again = again || s.CompletionTime == nil
				states = append(states, s)
			}
			if len(states) > 0 {
				slices.SortFunc(states, func(a, b v1beta1.ImageTagStatus) int { return int(a.Version - b.Version) })
				statuses[name] = v1beta1.ImageStatus{Tags: states}
			}
		}
		for name, status := range statuses {
			if image.Status.ImageStatuses == nil {
				image.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
			}
			image.Status.ImageStatuses[name] = status
		}
		tally.Count(image)
	})
	if again {
		l.w.After(20*time.Second, l.agent)
	}
}

// ask asks for one more tag, or another version of one.
func (l *life) ask() {
	l.rounds++
	t := l.tag(fmt.Sprint(l.IntN(3)), l.rounds, l.w.Now())
	l.askFor(t)
}

// startJob makes a job in place of one of the same name, and asks for its tag at once: caches may show the tag first,
// while the server does not answer.
func (l *life) startJob() {
	l.endJob()
	i := l.IntN(3)
	if uidOf(l.w, jobKind(), jobNamed(i)) != "" {
		return
	}
	l.jobs++
	uid := types.UID(fmt.Sprint("new-", l.jobs))
	l.w.Add(metadata(jobKind(), jobNamed(i), uid))
	if now := l.w.Now(); l.once(2) {
		l.silent = append(l.silent, [2]time.Time{now, now.Add(time.Duration(l.IntN(60)) * time.Second)})
	}
	l.rounds++
	t := l.tag(fmt.Sprint(l.IntN(3)), l.rounds, l.w.Now())
	t.OwnerReferences = []corev1.ObjectReference{{
		APIVersion: jobKind().GroupVersion().String(), Kind: jobKind().Kind, Namespace: "ns", Name: jobNamed(i).Name, UID: uid,
	}}
	l.askFor(t)
}

func (l *life) askFor(t v1beta1.ImageTagSpec) {
	l.change("", func(image *v1beta1.NodeImage) {
		if l.once(9) {
			t.CreatedAt = nil
		}
		name := []string{"nginx", "redis"}[l.IntN(2)]
		spec := image.Spec.Images[name]
		spec.Tags = append(slices.DeleteFunc(spec.Tags, func(old v1beta1.ImageTagSpec) bool { return old.Tag == t.Tag }), t)
		if l.once(2) {
			secret := secretNamed(l.IntN(3))
			spec.PullSecrets = []v1beta1.SecretReference{{Namespace: secret.Namespace, Name: secret.Name}}
		}
		if image.Spec.Images == nil {
			image.Spec.Images = map[string]v1beta1.ImageSpec{}
		}
		image.Spec.Images[name] = spec
	})
}

func (l *life) drop() {
	l.change("", func(image *v1beta1.NodeImage) { delete(image.Spec.Images, "nginx") })
}

func (l *life) endJob() {
	i := l.IntN(3)
	if uid := uidOf(l.w, jobKind(), jobNamed(i)); uid != "" {
		_ = l.w.Delete(cluster.UserActor, metadata(jobKind(), jobNamed(i), uid))
	}
}

func (l *life) removeSecret() {
	if uid := uidOf(l.w, secretKind(), secretNamed(1)); uid != "" {
		_ = l.w.Delete(cluster.UserActor, metadata(secretKind(), secretNamed(1), uid))
	}
}

func (l *life) removeImage() {
	if image := cluster.Get[*v1beta1.NodeImage](l.w.View(nil), "", "n1"); image != nil {
		_ = l.w.Delete(cluster.UserActor, image)
	}
}

func (l *life) relabel() {
	if n := cluster.Get[*corev1.Node](l.w.View(nil), "", "n1"); n != nil {
		_ = cluster.Change(l.w, cluster.UserActor, "", n, func(n *corev1.Node) { n.Labels = map[string]string{"zone": fmt.Sprint(l.IntN(9))} })
	}
}

// replaceNode removes the node. Another one of its name comes a while later, or never.
func (l *life) replaceNode() {
	if n := cluster.Get[*corev1.Node](l.w.View(nil), "", "n1"); n != nil {
		_ = l.w.Delete(cluster.UserActor, n)
		if !l.once(3) {
			l.w.After(time.Duration(l.IntN(100))*time.Second, l.addNode)
		}
	}
}

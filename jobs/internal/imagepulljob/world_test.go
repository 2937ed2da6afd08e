package imagepulljob

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// copiesIn is the namespace of the copies of pull secrets.
const copiesIn = "config"

var errKilled = errors.New("the operator was killed")

// world is two jobs that share a pull secret, the NodeImages of a few nodes, their agents, a user, and the passes of the
// operator. The server may refuse what the operator writes or not answer, others may write first, and the operator may be
// killed between any two writes; it forgets everything then.
type world struct {
	*testing.T
	*rand.Rand
	jobs    map[types.NamespacedName]*v1beta1.ImagePullJob
	images  map[string]*nodeimage.NodeImage
	nodes   map[string]*corev1.Node
	pods    []corev1.Pod
	secrets map[types.NamespacedName]*corev1.Secret
	at      time.Time
	uids    int

	calm    bool
	away    bool        // the server does not answer reads
	going   bool        // the namespace of the copies
	unknown bool        // which nodes are ready
	lacking []string    // the permissions for the copies
	refused action.Verb // what the server refuses
	refuses bool        // whether it has refused writes to NodeImages
	busy    memory.Key  // the job or the copy of the pass

	tried  map[string]bool // the NodeImages that this pass has written or tried to
	passes *passes
	copies *copyPasses
	memory *refusals.Tracker
	tries  retries.Tries
	ended  map[types.UID]v1beta1.ImagePullJobStatus
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		T: t, Rand: rand.New(rand.NewPCG(seed, 1)), at: gen.Epoch(), jobs: map[types.NamespacedName]*v1beta1.ImagePullJob{},
		images: map[string]*nodeimage.NodeImage{}, nodes: map[string]*corev1.Node{}, secrets: map[types.NamespacedName]*corev1.Secret{},
		ended: map[types.UID]v1beta1.ImagePullJobStatus{},
	}
	for range w.IntN(6) {
		w.addNode()
	}
	if w.IntN(4) == 0 { // the manager of NodeImages has yet to begin
		clear(w.images)
	}
	for _, name := range []string{"a", "b"} {
		w.addJob(name)
	}
	w.newOperator()
	return w
}

func (w *world) newOperator() {
	w.memory, w.tries = &refusals.Tracker{}, retries.Tries{}
	known := func(of client.Object, now time.Time) action.Refusals {
		return w.memory.For(memory.KeyOf(of), refusals.Observation{Now: now, Generation: of.GetGeneration()})
	}
	s := cluster{world: w}
	w.passes = newPasses(sources{Shown: s, Live: s, Refusals: known, Clock: s, TTL: 300 * time.Second, Namespace: copiesIn})
	w.copies = &copyPasses{Shown: s, Refusals: known, Clock: s}
}

func (w *world) odds(n int) bool { return !w.calm && w.IntN(n) == 0 }

// stamp makes an object another version, and gives a new one its UID.
func (w *world) stamp(o client.Object) {
	w.uids++
	o.SetResourceVersion(fmt.Sprint(w.uids))
	if o.GetUID() == "" {
		o.SetUID(types.UID("uid-" + o.GetResourceVersion()))
	}
}

func (w *world) addJob(name string) {
	j := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name, Generation: 1}}
	j.Spec.Image = "nginx:1.25"
	if w.IntN(2) == 0 {
		j.Spec.PullSecrets = []string{"registry"}
	}
	switch w.IntN(5) {
	case 0:
		j.Spec.PodSelector = &metav1.LabelSelector{}
	case 1:
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{"n1", "n0", "n1", "n9"}}
	case 2:
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}}
	}
	switch w.IntN(5) {
	case 0:
		j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(w.IntN(100)))
	case 1:
		j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(20 + w.IntN(200)))
	case 2:
		j.Spec.ImagePullPolicy = v1beta1.PullAlways
	}
	w.stamp(j)
	w.jobs[client.ObjectKeyFromObject(j)] = j
}

func (w *world) addNode() {
	name := fmt.Sprintf("n%d", w.IntN(8))
	if w.images[name] != nil {
		return
	}
	o := &nodeimage.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": []string{"a", "b"}[w.IntN(2)]}}}
	w.stamp(o)
	w.images[name], w.nodes[name] = o, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.pods = append(w.pods, *gen.Pod("on-"+name, gen.OnNode(name)))
}

// operate runs a pass over a job.
func (w *world) operate(key types.NamespacedName) {
	w.tried = map[string]bool{}
	made, err := w.passes.Look(ctrl.LoggerInto(w.Context(), logr.Discard()), key)
	if apierrors.IsNotFound(err) || err != nil && w.away {
		return
	}
	require.NoError(w, err)
	require.NoError(w, made.Err)
	if done, goesOn := w.carryOut(&made); goesOn {
		w.report(key, &made, done)
	}
}

// lookAtCopies runs the passes over the copies of secrets.
func (w *world) lookAtCopies() {
	for _, key := range w.copyKeys() {
		if len(w.lacking) > 0 {
			return // they are not watched
		}
		made, err := w.copies.Look(w.Context(), key)
		if !apierrors.IsNotFound(err) {
			require.NoError(w, err)
			w.carryOut(&made)
		}
	}
}

func (w *world) copyKeys() (keys []types.NamespacedName) {
	for _, key := range slices.SortedFunc(maps.Keys(w.secrets), func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if key.Namespace == copiesIn {
			keys = append(keys, key)
		}
	}
	return keys
}

// carryOut carries out a plan, of which a crash may leave a part.
func (w *world) carryOut(made *pass.Pass) (done progress.Result, goesOn bool) {
	w.busy = memory.KeyOf(made.Object)
	killed := false
	done = progress.Run(made.Plan.Steps, progress.InTurn(func(a *action.Action) progress.Outcome {
		if killed = killed || w.odds(8); killed {
			return progress.OutcomeOf(errKilled)
		}
		return progress.OutcomeOf(w.write(a))
	}, func() time.Time { return w.at }), progress.Options{
		Workload: w.busy, Generation: made.Object.GetGeneration(), Refusals: w.memory,
	})
	if killed {
		w.newOperator()
	}
	return done, !killed
}

// report writes the status of a job, unless the job has changed since it was read. A job that has ended says the same for
// ever.
func (w *world) report(key types.NamespacedName, made *pass.Pass, done progress.Result) {
	job := w.jobs[key]
	if job == nil || job.ResourceVersion != made.Object.GetResourceVersion() {
		return
	}
	after := made.Status(done.Failures().WithDeferred(made.Plan.Deferred))
	if after == nil {
		return
	}
	status := after.(*v1beta1.ImagePullJob).Status
	if last, ended := w.ended[job.UID]; ended {
		require.Equal(w, job.Generation, status.ObservedGeneration)
		status.ObservedGeneration = last.ObservedGeneration
		require.Equal(w, last, status, "an ended job says something new")
		status.ObservedGeneration = job.Generation
	} else if status.CompletionTime != nil {
		require.Equal(w, status.Desired, status.Succeeded+status.Failed)
		require.Zero(w, status.Active)
		none := len(w.images) == 0 && len(w.nodes) > 0 && !strings.HasPrefix(status.Message, plan.MessageDeadline)
		require.False(w, none, "no node has pulled: %s", status.Message)
		w.ended[job.UID] = status
	}
	w.edit(key, func(job *v1beta1.ImagePullJob) { job.Status = status })
}

// edit changes a job.
func (w *world) edit(key types.NamespacedName, change func(*v1beta1.ImagePullJob)) {
	job := w.jobs[key]
	if job == nil {
		return
	}
	job = job.DeepCopy()
	change(job)
	w.stamp(job)
	w.jobs[key] = job
	if job.DeletionTimestamp != nil && len(job.Finalizers) == 0 {
		delete(w.jobs, key)
	}
}

func (w *world) editSpec(key types.NamespacedName, change func(*v1beta1.ImagePullJobSpec)) {
	w.edit(key, func(job *v1beta1.ImagePullJob) {
		if job.Status.CompletionTime == nil && job.DeletionTimestamp == nil {
			job.Generation++
			w.tries = retries.Tries{} // an edit ends the pauses after refusals
			change(&job.Spec)
		}
	})
}

// pulling returns on how many nodes a tag that the job owns has not ended.
func (w *world) pulling(job types.UID) (n int) {
	for _, o := range w.images {
		for name, spec := range o.Spec.Images {
			for i := range spec.Tags {
				if ownedBy(&spec.Tags[i], job) && !hasEnded(o, name, &spec.Tags[i]) {
					n++
				}
			}
		}
	}
	return n
}

func ownedBy(tag *nodeimage.ImageTagSpec, job types.UID) bool {
	return slices.ContainsFunc(tag.OwnerReferences, func(o corev1.ObjectReference) bool { return o.UID == job })
}

func hasEnded(o *nodeimage.NodeImage, name string, tag *nodeimage.ImageTagSpec) bool {
	return slices.ContainsFunc(o.Status.ImageStatuses[name].Tags, func(s nodeimage.ImageTagStatus) bool {
		return s.Tag == tag.Tag && s.Version == tag.Version && s.CompletionTime != nil
	})
}

// limitOf returns how many nodes may pull at a time for a job.
func limitOf(job *v1beta1.ImagePullJob) int {
	if job.Spec.Parallelism == nil {
		return 1
	}
	return job.Spec.Parallelism.IntValue()
}

// round is a while in which all that there is acts.
func (w *world) round() {
	w.at = w.at.Add(time.Duration(1+w.IntN(20)) * time.Second)
	if !w.calm {
		w.disturb()
	}
	for _, name := range []string{"a", "b"} {
		w.operate(types.NamespacedName{Namespace: gen.Namespace, Name: name})
	}
	w.lookAtCopies()
	for _, name := range slices.Sorted(maps.Keys(w.images)) {
		if w.calm || w.IntN(3) == 0 {
			w.agent(name)
		}
	}
}

// settle has all disturbances end, and the jobs with them.
func (w *world) settle() {
	w.calm, w.away, w.going, w.unknown, w.lacking, w.refused = true, false, false, false, nil, ""
	w.putSecret(types.NamespacedName{Namespace: gen.Namespace, Name: "registry"})
	for len(w.images) == 0 {
		w.addNode()
	}
	for key := range w.jobs {
		w.editSpec(key, func(spec *v1beta1.ImagePullJobSpec) { spec.Parallelism = new(intstr.FromInt(2)) })
	}
	for range 60 { // pauses after refusals included
		w.round()
	}
}

func TestRandomWorldsKeepTheInvariants(t *testing.T) {
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newWorld(t, seed)
		for range 60 {
			w.round()
		}
		w.settle()
		for _, job := range w.jobs {
			require.NotNil(t, job.Status.CompletionTime, "%s: %s", job.Name, job.Status.Message)
			require.Empty(t, job.Finalizers, "%s holds its copies", job.Name)
			require.Equal(t, job.Generation, job.Status.ObservedGeneration)
		}
		for key, secret := range w.secrets {
			require.False(t, key.Namespace == copiesIn && len(plan.References(secret)) > 0, "copy %s outlives its jobs (I-IPJ-3)", key)
		}
	})
}

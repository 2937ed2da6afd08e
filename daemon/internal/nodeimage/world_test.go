package nodeimage

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/informers"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const creationDelay = 30 * time.Second

// keeper is the operator of one node's NodeImage. It runs the passes of the controller.
type keeper struct {
	t      testing.TB
	life   *life
	passes *passes // nil before the operator plans
	cache  *informers.Cache
	view   *operator.View
	pass   pass.Pass
}

// Restart implements operator.Restarter.
func (k *keeper) Restart() { k.passes = nil }

func (k *keeper) start() {
	k.cache = informers.New(k.life.w.Cluster(), cache.Options{
		DefaultTransform: fastclient.Trim, ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: fastclient.Nodes()},
	})
	s := server{life: k.life}
	k.passes = newPasses(sources{
		Reader: fastclient.NewReader(k.cache, runtime.NewScheme(), fastclient.Options{}), Live: s, Clock: s, CreationDelay: creationDelay,
		Refusals: func(of client.Object, _ time.Time) action.Refusals { return k.view.Refusals(of, nil, 0) },
	})
}

// Plan implements operator.Planner.
func (k *keeper) Plan(v *operator.View, now time.Time, _ uint64) ([]action.Step, time.Duration) {
	if k.passes == nil {
		k.start()
	}
	if k.view = v; !now.Before(k.life.served) {
		k.passes.jobs.cached.Store(&jobCache{cache: cachedJobs{cache: k.cache}, version: jobVersion})
	}
	k.cache.Show(v.View)
	var err error
	k.pass, err = k.passes.Look(ctrl.LoggerInto(k.t.Context(), logr.Discard()), types.NamespacedName{Name: "n1"})
	if err != nil {
		k.pass = pass.Pass{}
		if !apierrors.IsNotFound(err) {
			k.life.w.Violate("no pass: %v", err)
		}
	}
	return k.pass.Plan.Steps, k.pass.Plan.RequeueAfter
}

// Report implements operator.Reporter.
func (k *keeper) Report(done action.Failures) []action.Step {
	if k.pass.Status == nil {
		return nil
	}
	var body map[string]any
	patch, err := client.MergeFrom(k.pass.Object).Data(k.pass.Status(done)) // it removes images, too
	if err == nil {
		err = json.Unmarshal(patch, &body)
	}
	require.NoError(k.t, err)
	return []action.Step{{Name: "status", Actions: []action.Action{{
		Verb: action.PatchStatus, Object: k.pass.Object, Reason: "Status",
		Patches: []action.Patch{{Subresource: "status", Type: types.MergePatchType, Body: body}},
	}}}}
}

// Notices implements operator.Noticer. It comes after the status.
func (k *keeper) Notices(statusWritten bool) []action.Notice {
	if k.pass.After != nil {
		k.pass.After(k.t.Context(), statusWritten)
	}
	return k.pass.Plan.NoticesToRecord(statusWritten)
}

// unarrived returns what in the end is not as the node wants it, and what was asked for and has no end. That the plan
// wants nothing more is judged by the walk.
func unarrived(w *simulate.World) (problems []string) {
	v := w.View(nil)
	n, image := cluster.Get[*corev1.Node](v, "", "n1"), cluster.Get[*v1beta1.NodeImage](v, "", "n1")
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
	for name, spec := range image.Spec.Images {
		for i := range spec.Tags {
			if tag := &spec.Tags[i]; !hasEnded(image, name, tag) {
				problems = append(problems, fmt.Sprintf("%s:%s has no end", name, tag.Tag))
			}
		}
	}
	return append(problems, orphans(w, image)...)
}

// orphans are tags whose last job is gone, and references to secrets that are gone.
func orphans(w *simulate.World, image *v1beta1.NodeImage) (problems []string) {
	for name, spec := range image.Spec.Images {
		for i := range spec.Tags {
			if tag := &spec.Tags[i]; len(tag.OwnerReferences) > 0 && !isAlive(w, tag) {
				problems = append(problems, fmt.Sprintf("%s:%s outlives its jobs", name, tag.Tag))
			}
		}
		for _, secret := range spec.PullSecrets {
			if uidOf(w, secretKind(), types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}) == "" {
				problems = append(problems, fmt.Sprintf("%s refers to secret %s", name, secret.Name))
			}
		}
	}
	return problems
}

func walk(t *testing.T, count int, faults func(uint64) simulate.Faults) {
	t.Helper()
	simulate.Walk{
		Count: count, Start: startLife, Faults: faults, Unarrived: unarrived,
		Describe: func(w *simulate.World) string {
			return fmt.Sprintf("%+v", cluster.Get[*v1beta1.NodeImage](w.View(nil), "", "n1"))
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
			f.Refused = append(f.Refused, retries.Refused{
				Write: writes[d.IntN(len(writes))], Code: retries.AnswerCodes()[d.IntN(len(retries.AnswerCodes()))],
				From: from, Until: from + time.Duration(1+d.IntN(15))*time.Minute,
			})
		}
		return f
	})
}

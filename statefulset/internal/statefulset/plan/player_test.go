package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// played is the kind as the operator runs it.
type played = frame.Workload[v1beta1.StatefulSet, *v1beta1.StatefulSet, Snapshot]

// ofOperator returns it. TestMain sets it, because the package of the operator imports this one.
var ofOperator func(FeatureGates) *played

// SetWorkload sets it.
func SetWorkload(of func(FeatureGates) *played) { ofOperator = of }

// player plays the plans of StatefulSet "web" in a simulated world, as the controller would on a server, and judges every one
// of them.
type player struct {
	*rehearse.Player[v1beta1.StatefulSet, *v1beta1.StatefulSet, Snapshot]

	world        *simulate.World
	featureGates FeatureGates
	offline      bool // file systems grow when they are mounted the next time
	never        bool // not even then
}

func newPlayer(w *simulate.World, featureGates FeatureGates) *player {
	p := &player{world: w, featureGates: featureGates}
	p.Player = rehearse.New(w.Cluster(), rehearse.Options[v1beta1.StatefulSet, *v1beta1.StatefulSet, Snapshot]{
		Set:      types.NamespacedName{Namespace: gen.Namespace, Name: "web"},
		Workload: func() *played { return ofOperator(p.featureGates) },
		Judge: func(seen Snapshot, todo Plan) {
			w.ApplyJudges(todo.Steps, todo.String(), planJudges(seen, todo)...)
		},
	})
	return p
}

// play is a world with StatefulSet "web" of image app:1 and the player of its plans, with every check.
func play(t testing.TB, options cluster.Options, replicas int32, change ...setOption) (*simulate.World, *player) {
	t.Helper()
	set := newSet(replicas, change...)
	set.Generation = 1
	w := simulate.New(options, set, storageClass("big", true), storageClass("fixed", false))
	p := newPlayer(w, allFeatureGates())
	watch(w)
	p.growVolumes()
	return w, p
}

func storageClass(name string, expandable bool) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: &expandable}
}

// largestVolume is how much the storage of a world has for one claim.
const largestVolume = "10Gi"

// growVolumes lets the storage of the world follow claims that ask for another size, in its phases: the volume grows after
// a while, or is too large, and then its file system.
func (p *player) growVolumes() {
	p.world.OnEvent(func(w *simulate.World, e cluster.Event) {
		switch o := e.Object.(type) {
		case *corev1.PersistentVolumeClaim:
			if e.Actor == cluster.OperatorActor && e.Type == cluster.Modified && !hasRequestedSize(o) && pendingFileSystem(o) == nil {
				w.After(5*time.Second, func() { p.grow(o) })
			}
		case *corev1.Pod:
			if e.Subresource == "binding" && !p.never { // a kubelet mounts volumes before it starts containers
				w.After(0, func() { mount(w, o) })
			}
		}
	})
}

// driver grows volumes. A volume that grows under a pod is a change of the world: where only a mount grows the
// file system, it lets another pod be made for a set that nobody has edited.
const driver = "driver"

func (p *player) grow(claim *corev1.PersistentVolumeClaim) {
	_ = cluster.Change(p.world, driver, "status", claim, func(c *corev1.PersistentVolumeClaim) {
		is := corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(p.world.Now()),
		}
		c.Status.AllocatedResourceStatuses = nil
		if want := requested(c); want.Cmp(resource.MustParse(largestVolume)) > 0 {
			is.Type, is.Message = corev1.PersistentVolumeClaimControllerResizeError, "no volume is larger than "+largestVolume
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible}
		}
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{is}
	})
	if !p.offline { // the kubelet grows it when it synchronizes the pod
		p.world.After(time.Duration(1+len(claim.Name)*13%90)*time.Second, func() { growMounted(p.world, claim) })
	}
}

// growMounted grows the file system of a claim that a pod has mounted which runs.
func growMounted(w *simulate.World, claim *corev1.PersistentVolumeClaim) {
	for _, o := range w.Pods() {
		if o.Status.Phase == corev1.PodRunning && slices.ContainsFunc(o.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		}) {
			mount(w, o)
		}
	}
}

// mount grows the file systems of the pod that await it.
func mount(w *simulate.World, o *corev1.Pod) {
	for _, v := range o.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), o.Namespace, v.PersistentVolumeClaim.ClaimName)
		if claim != nil && pendingFileSystem(claim) != nil {
			_ = cluster.Change(w, cluster.BinderActor, "status", claim, func(c *corev1.PersistentVolumeClaim) {
				c.Status.Capacity, c.Status.Conditions = c.Spec.Resources.Requests, nil
			})
		}
	}
}

// edit changes the set in the way of a user.
func edit(w *simulate.World, change ...setOption) {
	err := cluster.Change(w, cluster.UserActor, "", newSet(0), func(set *v1beta1.StatefulSet) {
		for _, c := range change {
			c(set)
		}
	})
	if err != nil {
		w.Violate("an edit that no server takes: %v", err)
	}
}

func setIn(v *cluster.View) *v1beta1.StatefulSet {
	return cluster.Get[*v1beta1.StatefulSet](v, gen.Namespace, "web")
}

func present(w *simulate.World) *v1beta1.StatefulSet { return setIn(w.View(nil)) }

func activePods(w *simulate.World) []*corev1.Pod { return w.View(nil).Active("set-uid") }

func podOf(w *simulate.World, ordinal int32) *corev1.Pod {
	return cluster.Get[*corev1.Pod](w.View(nil), gen.Namespace, podName("web", ordinal))
}

// running are the ordinals of the active pods, in order.
func running(w *simulate.World) []int32 {
	all := []int32{}
	for _, o := range activePods(w) {
		if ordinal, ok := ordinalOf("web", o.Name); ok {
			all = append(all, ordinal)
		}
	}
	slices.Sort(all)
	return all
}

// answers lets a user's controller answer the hooks of the set, each some time after it was asked.
func answers(w *simulate.World, after time.Duration) {
	w.AnswerHooks(after, func() *workload.Lifecycle { return present(w).Spec.Lifecycle })
}

// arrived requires that the pods of all live ordinals are available and, as far as the partition lets
// them, at the template's revision, and that the status says so.
func arrived(t testing.TB, w *simulate.World) {
	t.Helper()
	if problems := unarrived(w); len(problems) > 0 {
		require.Empty(t, problems, "the story:\n%s", w.Story())
	}
}

package forecast

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/simulation/operator"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/whatif"
)

// Sums that follow the changes of pods and claims equal the sums over all of them, after each event of random runs.
func TestSumsFollowTheChanges(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			set := growing()
			s := newScheduler(nil, nil)
			all := newQuotas([]*corev1.ResourceQuota{
				{ObjectMeta: metav1.ObjectMeta{Name: "all"}},
				{ObjectMeta: metav1.ObjectMeta{Name: "scope"}, Spec: corev1.ResourceQuotaSpec{
					Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort},
				}},
			})
			w := nodes.New(cluster.Options{Seed: seed, Schedule: s.schedule, Flaps: 0.2}, set)
			w.AddNodes(4)
			w.OnEvent(s.see)
			w.OnEvent(all.see)
			w.OnEvent(func(cluster.Event) { compare(t, w.Cluster(), s, all) })
			key := types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
			run := operator.New(w.Cluster(), whatif.Planner(w.Cluster(), key), operator.Settings{Coalesce: true})
			require.NoError(t, run.Play(5000))
			for _, edit := range []func(*v1beta1.CloneSet){
				func(c *v1beta1.CloneSet) { c.Spec.Template.Spec.Containers[0].Image = "app:v2" },
				func(c *v1beta1.CloneSet) { c.Spec.Replicas = new(int32(4)) },
				func(c *v1beta1.CloneSet) {
					c.Spec.Replicas = new(int32(9))
					c.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
				},
				func(c *v1beta1.CloneSet) {
					c.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("200m")
				},
			} {
				w.Evict(w.Pods()[0])
				require.NoError(t, cluster.Change(w, cluster.UserActor, "", set, edit))
				require.NoError(t, run.Play(5000))
			}
		})
	}
}

// growing is a CloneSet of pods with claims.
func growing() *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	set.Spec.Replicas = new(int32(7))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1.5Gi")}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:v1", Resources: corev1.ResourceRequirements{Requests: requests}}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return set
}

func compare(t *testing.T, w *cluster.World, s *scheduler, all quotas) {
	t.Helper()
	full := newScheduler(w.Pods(), nil)
	for node, of := range s.loads {
		want := full.load(node)
		require.Equal(t, uids(want.pods), uids(of.pods))
		same(t, want.sum, of.sum)
	}
	for node := range full.loads {
		require.Contains(t, s.loads, node)
	}
	for _, quota := range all {
		used := corev1.ResourceList{}
		for _, kind := range []string{"Pod", "PersistentVolumeClaim"} {
			for _, o := range w.View(nil).Objects(kind) {
				if matches(quota.ResourceQuota, o) {
					addTo(used, usage(o))
				}
			}
		}
		same(t, used, quota.used)
	}
}

func uids(pods []*corev1.Pod) []types.UID {
	var all []types.UID
	for _, pod := range pods {
		all = append(all, pod.UID)
	}
	slices.Sort(all)
	return all
}

// same requires equal amounts. A name that is missing counts as zero.
func same(t *testing.T, want, got corev1.ResourceList) {
	t.Helper()
	for _, list := range []corev1.ResourceList{want, got} {
		for name := range list {
			a, b := want[name], got[name]
			require.Zero(t, a.Cmp(b), "%s: %s by the full sum, %s by the changes", name, a.String(), b.String())
		}
	}
}

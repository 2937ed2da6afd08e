package statefulset

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// storing adds a volume to each pod, on which its application writes a journal of its starts.
func storing(set *v1beta1.StatefulSet) {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", "1Mi")}
	c := &set.Spec.Template.Spec.Containers[0]
	c.Args = []string{"-journal", "/data/journal"}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	c.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(0))} // the owner of the volumes' folders
}

func claimTemplate(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

func retention(scaled, deleted appsv1.PersistentVolumeClaimRetentionPolicyType) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: scaled, WhenDeleted: deleted}
	}
}

// journal returns the journal on the volume of the pod: the version of the application at each start.
func journal(t *testing.T, o *corev1.Pod) []string {
	t.Helper()
	text, err := world.Ask(t, o, "/journal")
	require.NoError(t, err)
	return strings.Fields(text)
}

// claimsOf returns the claims of the namespace that are not terminating, by name.
func claimsOf(t *testing.T, set *v1beta1.StatefulSet) map[string]*corev1.PersistentVolumeClaim {
	t.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	require.NoError(t, world.Client.List(t.Context(), list, client.InNamespace(set.Namespace)))
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			claims[list.Items[i].Name] = &list.Items[i]
		}
	}
	return claims
}

// volumes returns the volumes of the claims, by the claims' names.
func volumes(claims map[string]*corev1.PersistentVolumeClaim) map[string]string {
	all := map[string]string{}
	for name, claim := range claims {
		all[name] = claim.Spec.VolumeName
	}
	return all
}

func TestDataSurvivesAnUpdateInPlaceAndARecreate(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, storing)
	givenSet(t, set)
	bound := volumes(claimsOf(t, set))
	assert.Len(t, bound, 2)
	require.Contains(t, bound, "data-web-0")
	require.NotEmpty(t, bound["data-web-0"])
	rolls(t, set, image("v2"))
	rolls(t, set, changes(recreating, image("v3")))
	for _, o := range story.Active(podsOf(t, set)) {
		assert.Equal(t, []string{"v1", "v2", "v3"}, journal(t, &o), o.Name)
	}
	assert.Equal(t, bound, volumes(claimsOf(t, set)))
}

func TestClaimsAreKeptOrDeletedWhenScaledIn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType
		left       []string
		journal    []string // of web-1 after it is recreated
	}{
		"Retain": {appsv1.RetainPersistentVolumeClaimRetentionPolicyType, []string{"data-web-0", "data-web-1"}, []string{"v1", "v1"}},
		"Delete": {appsv1.DeletePersistentVolumeClaimRetentionPolicyType, []string{"data-web-0"}, []string{"v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 2, storing, retention(tt.whenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType))
			givenSet(t, set)
			rolls(t, set, replicas(1))
			story.Eventually(t, "the claims as the policy wants them", func(context.Context) error {
				claims := claimsOf(t, set)
				for _, name := range tt.left {
					if claims[name] == nil {
						return story.Want(false, "claim %s is gone", name)
					}
				}
				return story.Want(len(claims) == len(tt.left) && len(podsOf(t, set)) == 1, "claims are %v", volumes(claims))
			})
			rolls(t, set, replicas(2))
			assert.Equal(t, tt.journal, journal(t, &podsOf(t, set)[1]))
		})
	}
}

func TestClaimsAreKeptOrDeletedWithTheSet(t *testing.T) {
	t.Parallel()
	for _, policy := range []appsv1.PersistentVolumeClaimRetentionPolicyType{
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 2, storing, retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType, policy))
			givenSet(t, set)
			before := volumes(claimsOf(t, set))
			require.NoError(t, world.Client.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationForeground)))
			story.Eventually(t, "the end of the set", func(ctx context.Context) error {
				err := world.Client.Get(ctx, client.ObjectKeyFromObject(set), &v1beta1.StatefulSet{})
				return story.Want(apierrors.IsNotFound(err) && len(podsOf(t, set)) == 0, "%v", err)
			})
			if policy == appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
				assert.Equal(t, before, volumes(claimsOf(t, set)))
				return
			}
			story.Eventually(t, "the end of the claims", func(context.Context) error {
				left := claimsOf(t, set)
				return story.Want(len(left) == 0, "claims are %v", volumes(left))
			})
		})
	}
}

// The claims of pods on a crashed node are kept, also with retention policy Delete, which applies to scaling in and to
// the deletion of the set. The recreated pod has its data.
func TestACrashedNodeKeepsTheClaims(t *testing.T) {
	set := newSet(world.Namespace(t), 2, storing,
		retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType))
	givenSet(t, set)
	before, lost := volumes(claimsOf(t, set)), &podsOf(t, set)[1]
	node, err := world.Cluster.NodeNamed(lost.Spec.NodeName)
	require.NoError(t, err)
	cordon(t.Context(), t, node.Name(), true) // the scheduler notices the crash much later
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, node.Start(ctx))
		cordon(ctx, t, node.Name(), false)
	})
	require.NoError(t, node.Stop(t.Context()))

	// An administrator does this if the node will not come back soon.
	world.KillOperator(t, "statefulset") // which may have run on that node, too
	require.NoError(t, world.Client.Delete(t.Context(), lost, client.GracePeriodSeconds(0)))
	story.Eventually(t, "another web-1 in service", func(context.Context) error {
		for _, o := range story.Active(podsOf(t, set)) {
			if o.Name == lost.Name && o.UID != lost.UID && story.IsReady(&o) {
				return nil
			}
		}
		return story.Want(false, "pods are %v", story.Identities(podsOf(t, set)))
	})
	assert.Equal(t, before, volumes(claimsOf(t, set)))
	again := podsOf(t, set)[1]
	assert.NotEqual(t, lost.Spec.NodeName, again.Spec.NodeName)
	assert.Equal(t, []string{"v1", "v1"}, journal(t, &again))
}

// cordon makes a node unschedulable, or schedulable again.
func cordon(ctx context.Context, t *testing.T, node string, on bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)
	require.NoError(t, world.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, patch)))
}

// An added template applies from the next update on: pods are recreated one at a time, and keep their other claims.
func TestAnAddedClaimTemplateRecreatesPodsInOrder(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, storing)
	givenSet(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(1))
	rolls(t, set, changes(image("v2"), func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, claimTemplate("logs", "1Mi"))
		c := &s.Spec.Template.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "logs", MountPath: "/logs"})
	}))
	end()
	for _, o := range story.Active(podsOf(t, set)) {
		assert.Equal(t, []string{"v1", "v2"}, journal(t, &o), o.Name)
		assert.Contains(t, claimsOf(t, set), "logs-"+o.Name)
	}
}

// Claims are expanded in the order of the update, up to the partition, and pods restart after the expansion.
func TestClaimsGrowWithTheUpdate(t *testing.T) {
	givenGrowingClaims(t)
	set := newSet(world.Namespace(t), 3, storing, func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdate
	})
	givenSet(t, set)
	sizes := func() map[string]string {
		all := map[string]string{}
		for name, claim := range claimsOf(t, set) {
			all[name] = claim.Status.Capacity.Storage().String()
		}
		return all
	}
	rolls(t, set, changes(image("v2"), partition(2), func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", "2Mi")}
	}))
	assert.Equal(t, map[string]string{"data-web-0": "1Mi", "data-web-1": "1Mi", "data-web-2": "2Mi"}, sizes())
	assert.Equal(t, []v1beta1.VolumeClaimStatus{{VolumeClaimName: "data", CompatibleReplicas: 1, CompatibleReadyReplicas: 1}}, set.Status.VolumeClaims)

	rolls(t, set, partition(0))
	assert.Equal(t, map[string]string{"data-web-0": "2Mi", "data-web-1": "2Mi", "data-web-2": "2Mi"}, sizes())
	assert.Equal(t, []string{"v1", "v2"}, journal(t, &story.Active(podsOf(t, set))[0]))

	rolls(t, set, func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", "1Mi")}
	})
	assert.Equal(t, map[string]string{"data-web-0": "2Mi", "data-web-1": "2Mi", "data-web-2": "2Mi"}, sizes(), "claims never shrink")
}

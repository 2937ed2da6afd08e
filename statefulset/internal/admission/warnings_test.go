package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

func TestFieldsWhoseGateIsOffAreNamed(t *testing.T) {
	on := FeatureGates{StartOrdinal: true, AutoDeletePVC: true, AutoResizePVC: true, PreDownload: true}
	cases := []struct {
		name   string
		change func(*set)
		off    func(*FeatureGates)
		want   string
	}{
		{"start", func(s *set) { s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: 2} }, func(g *FeatureGates) { g.StartOrdinal = false },
			"spec.ordinals has no effect: feature gate StatefulSetStartOrdinal of the StatefulSet operator is off"},
		{"retention", func(s *set) { s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = deletes }, func(g *FeatureGates) { g.AutoDeletePVC = false },
			"spec.persistentVolumeClaimRetentionPolicy has no effect: feature gate StatefulSetAutoDeletePVC of the StatefulSet operator is off"},
		{"resize", func(s *set) { s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdate }, func(g *FeatureGates) { g.AutoResizePVC = false },
			"spec.volumeClaimUpdateStrategy has no effect: feature gate StatefulSetAutoResizePVCGate of the StatefulSet operator is off"},
		{"pre-download by a field", rolling(func(r *strategy) {
			r.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: number(2)}
		}), func(g *FeatureGates) { g.PreDownload = false },
			"image pre-download has no effect: feature gate PreDownloadImageForInPlaceUpdate of the StatefulSet operator is off"},
		{"pre-download by an annotation", func(s *set) {
			s.Annotations = map[string]string{contract.ImagePreDownloadTimeoutSecondsAnnotation: "9"}
		}, func(g *FeatureGates) { g.PreDownload = false },
			"image pre-download has no effect: feature gate PreDownloadImageForInPlaceUpdate of the StatefulSet operator is off"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			off := on
			c.off(&off)
			assert.Equal(t, []string{c.want}, Warnings(valid(c.change), nil, off))
			assert.Empty(t, Warnings(valid(c.change), nil, on))
			assert.Empty(t, Warnings(valid(), nil, off), "defaults are no wishes")
		})
	}
}

func TestShrinkingClaimsAreNamed(t *testing.T) {
	shrunk := valid(claims(func(data, _ *corev1.PersistentVolumeClaim) { resized(data, "1Gi") }))
	want := []string{"spec.volumeClaimTemplates[data]: existing PVCs keep their size; only new PVCs are smaller"}
	assert.Equal(t, want, Warnings(shrunk, valid(claims(nil)), FeatureGates{AutoResizePVC: true}))
	assert.Empty(t, Warnings(valid(claims(nil)), shrunk, FeatureGates{AutoResizePVC: true}), "growing")
}

func TestRemovedClaimTemplatesThatAPartitionKeepsMountedAreNamed(t *testing.T) {
	mounted := valid(func(s *set) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi"), gen.Claim("log", "1Gi"), gen.Claim("spare", "1Gi")}
		s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data"}, {Name: "log"}}
	})
	removed := func(partition int32) []string {
		now := mounted.DeepCopy()
		now.Spec.VolumeClaimTemplates = now.Spec.VolumeClaimTemplates[:1]
		rolling(func(r *strategy) { r.Partition = &partition })(now)
		return Warnings(now, mounted, FeatureGates{StartOrdinal: true, AutoDeletePVC: true, PreDownload: true})
	}
	require.Len(t, removed(1), 1, "nothing mounts the spare one")
	assert.Contains(t, removed(1)[0], "spec.volumeClaimTemplates[log]: partition keeps pods")
	assert.Empty(t, removed(0))
}

func TestOverlappingReservationsAreNamed(t *testing.T) {
	overlapping := valid(func(s *set) { s.Spec.ReserveOrdinals = append(s.Spec.ReserveOrdinals, *number(3), *text("2-5")) })
	assert.Equal(t, []string{"spec.reserveOrdinals[1]: 2-5 overlaps with another entry"}, Warnings(overlapping, nil, FeatureGates{}))
}

func TestNamesThatLeaveNoRoomForOrdinals(t *testing.T) {
	named := func(length int) []string {
		return Warnings(valid(func(s *set) { s.Name = strings.Repeat("a", length) }), nil, FeatureGates{})
	}
	assert.Empty(t, named(61))
	assert.Len(t, named(62), 1)
}

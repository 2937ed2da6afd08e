package conversion

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/conversion"
)

func toHub(t *testing.T, src *v1alpha1.CloneSet) *v1beta1.CloneSet {
	t.Helper()
	before, dst := src.DeepCopy(), &v1beta1.CloneSet{}
	require.NoError(t, ToHub(src, dst))
	require.Equal(t, before, src, "the source is changed")
	return dst
}

func fromHub(t *testing.T, src *v1beta1.CloneSet) *v1alpha1.CloneSet {
	t.Helper()
	before, dst := src.DeepCopy(), &v1alpha1.CloneSet{}
	require.NoError(t, FromHub(src, dst))
	require.Equal(t, before, src, "the source is changed")
	return dst
}

const rounds = 2000

func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 3).MaxDepth(9).Funcs(
		func(in *intstr.IntOrString, c randfill.Continue) {
			*in = intstr.FromInt32(c.Int31n(9))
			if c.Bool() {
				*in = intstr.FromString("30%")
			}
		},
		func(in *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&in.Name)
			c.Fill(&in.Labels)
			c.Fill(&in.Annotations)
			for _, key := range keys() {
				if text := []string{"true", "false", "7", "007", "x", ""}[c.Intn(6)]; c.Bool() {
					key.set(in, &text)
				}
			}
		},
		func(in *metav1.FieldsV1, _ randfill.Continue) { *in = metav1.FieldsV1{} },
		func(in *v1beta1.CloneSetUpdateStrategyType, c randfill.Continue) {
			*in = []v1beta1.CloneSetUpdateStrategyType{v1beta1.RollingUpdate, v1beta1.OnDelete}[c.Intn(2)]
		},
		func(in *v1beta1.PodUpdatePolicy, c randfill.Continue) {
			*in = []v1beta1.PodUpdatePolicy{"", v1beta1.ReCreate, v1beta1.InPlaceOnly, v1beta1.InPlaceIfPossible}[c.Intn(4)]
		},
		func(in *v1alpha1.CloneSetUpdateStrategyType, c randfill.Continue) {
			*in = []v1alpha1.CloneSetUpdateStrategyType{"ReCreate", "InPlaceOnly", "InPlaceIfPossible", "OnDelete", "other"}[c.Intn(5)]
		},
	)
}

// writeOut states what the absence of type, rollingUpdate and podUpdatePolicy means.
func writeOut(strategy *v1beta1.CloneSetUpdateStrategy) {
	if strategy.Type == v1beta1.OnDelete {
		return
	}
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
	}
	if strategy.RollingUpdate.PodUpdatePolicy == "" {
		strategy.RollingUpdate.PodUpdatePolicy = v1beta1.ReCreate
	}
}

func TestHubSurvivesV1alpha1(t *testing.T) {
	seed := rand.Int64()
	fill := filler(seed)
	for range rounds {
		var want v1beta1.CloneSet
		fill.Fill(&want)
		want.TypeMeta = metav1.TypeMeta{}
		delete(want.Annotations, ignoredAnnotation)

		got := toHub(t, fromHub(t, &want))

		writeOut(&want.Spec.UpdateStrategy)
		if !equality.Semantic.DeepEqual(&want, got) {
			t.Fatalf("seed %d: %s", seed, diff.Diff(&want, got))
		}
	}
}

func TestV1alpha1SurvivesHub(t *testing.T) {
	seed := rand.Int64()
	fill := filler(seed)
	for range rounds {
		var want v1alpha1.CloneSet
		fill.Fill(&want)
		want.TypeMeta = metav1.TypeMeta{}
		strategy := &want.Spec.UpdateStrategy.InPlaceUpdateStrategy
		if *strategy != nil && isZero(**strategy) {
			*strategy = nil // means the same
		}

		got := fromHub(t, toHub(t, &want))

		if !equality.Semantic.DeepEqual(&want, got) {
			t.Fatalf("seed %d: %s", seed, diff.Diff(&want, got))
		}
	}
}

func TestUpdateTypeAndPolicy(t *testing.T) {
	one := new(intstr.FromInt32(1))
	cases := []struct {
		name  string
		spoke v1alpha1.CloneSetUpdateStrategy
		hub   v1beta1.CloneSetUpdateStrategy
	}{
		{
			name: "no type is ReCreate",
			hub: v1beta1.CloneSetUpdateStrategy{
				Type:          v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.ReCreate},
			},
		},
		{
			name:  "the type is the policy, flat members move",
			spoke: v1alpha1.CloneSetUpdateStrategy{Type: v1alpha1.InPlaceOnly, Partition: one, Paused: true},
			hub: v1beta1.CloneSetUpdateStrategy{
				Type:          v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.InPlaceOnly, Partition: one, Paused: true},
			},
		},
		{
			name:  "an unknown type stays visible for validation",
			spoke: v1alpha1.CloneSetUpdateStrategy{Type: "Sometimes"},
			hub: v1beta1.CloneSetUpdateStrategy{
				Type:          v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: "Sometimes"},
			},
		},
		{
			name:  "OnDelete alone has no rollingUpdate",
			spoke: v1alpha1.CloneSetUpdateStrategy{Type: v1alpha1.OnDelete},
			hub:   v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDelete},
		},
		{
			name:  "OnDelete keeps its numbers",
			spoke: v1alpha1.CloneSetUpdateStrategy{Type: v1alpha1.OnDelete, MaxUnavailable: one},
			hub: v1beta1.CloneSetUpdateStrategy{
				Type:          v1beta1.OnDelete,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: one},
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			hub := toHub(t, &v1alpha1.CloneSet{Spec: v1alpha1.CloneSetSpec{UpdateStrategy: c.spoke}})
			assert.Equal(t, c.hub, hub.Spec.UpdateStrategy)
		})
	}
}

func TestClaimReuseHasOppositeDefaults(t *testing.T) {
	assert.True(t, toHub(t, &v1alpha1.CloneSet{}).Spec.ScaleStrategy.EnablePVCReuse)
	assert.True(t, fromHub(t, &v1beta1.CloneSet{}).Spec.ScaleStrategy.DisablePVCReuse)
}

func TestFieldsStandAsLabelAndAnnotations(t *testing.T) {
	hub := &v1beta1.CloneSet{}
	hub.Spec.ScaleStrategy.ExcludePreparingDelete = true
	hub.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		InPlaceUpdateStrategy: &workload.InPlaceUpdateStrategy{ImagePreDownloadTimeoutSeconds: new(int32(60))},
	}

	spoke := fromHub(t, hub)

	assert.Equal(t, "true", spoke.Labels[contract.ScalingExcludePreparingDeleteLabel])
	assert.Equal(t, "60", spoke.Annotations[contract.ImagePreDownloadTimeoutSecondsAnnotation])
	assert.Nil(t, spoke.Spec.UpdateStrategy.InPlaceUpdateStrategy)
}

func TestLabelOfV1alpha1SetsTheField(t *testing.T) {
	label := contract.ScalingExcludePreparingDeleteLabel
	set := func(value bool) *v1alpha1.CloneSet {
		hub := &v1beta1.CloneSet{}
		hub.Spec.ScaleStrategy.ExcludePreparingDelete = value
		return fromHub(t, hub)
	}

	t.Run("a label set by the user stays", func(t *testing.T) {
		spoke := set(false)
		spoke.Labels = map[string]string{label: "true"}
		hub := toHub(t, spoke)
		assert.True(t, hub.Spec.ScaleStrategy.ExcludePreparingDelete)
		assert.Equal(t, "true", hub.Labels[label])
	})
	t.Run("removing the label that the field wrote clears the field", func(t *testing.T) {
		spoke := set(true)
		delete(spoke.Labels, label)
		assert.False(t, toHub(t, spoke).Spec.ScaleStrategy.ExcludePreparingDelete)
	})
	t.Run("a client that drops the record loses nothing", func(t *testing.T) {
		spoke := set(true)
		delete(spoke.Annotations, recordAnnotation)
		assert.True(t, toHub(t, spoke).Spec.ScaleStrategy.ExcludePreparingDelete)
	})
}

func TestAnnotationWithoutMeaningIsIgnored(t *testing.T) {
	spoke := &v1alpha1.CloneSet{}
	spoke.Annotations = map[string]string{contract.ImagePreDownloadTimeoutSecondsAnnotation: "soon"}

	hub := toHub(t, spoke)

	assert.Nil(t, hub.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy)
	assert.Equal(t, spoke.Annotations, fromHub(t, hub).Annotations)
}

func TestPreDownloadFieldsOfV1alpha1HaveNoEffect(t *testing.T) {
	spoke := &v1alpha1.CloneSet{}
	spoke.Spec.UpdateStrategy.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{
		GracePeriodSeconds: 3, ImagePreDownloadTimeoutSeconds: new(int32(60)),
	}

	hub := toHub(t, spoke)

	assert.Equal(t, &workload.InPlaceUpdateStrategy{GracePeriodSeconds: 3}, hub.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy)
}

// Both versions have the deadline of resizes, beside fields that v1alpha1 ignores, too.
func TestTheDeadlineOfResizesStaysInItsField(t *testing.T) {
	for _, timeout := range []*int32{nil, new(int32(60))} {
		spoke := &v1alpha1.CloneSet{}
		spoke.Spec.UpdateStrategy.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{
			ResizeDeadlineSeconds: new(int32(300)), ImagePreDownloadTimeoutSeconds: timeout,
		}
		hub := toHub(t, spoke)
		in := hub.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy
		assert.Equal(t, &workload.InPlaceUpdateStrategy{ResizeDeadlineSeconds: new(int32(300))}, in)
		assert.Equal(t, spoke.Spec.UpdateStrategy.InPlaceUpdateStrategy, fromHub(t, hub).Spec.UpdateStrategy.InPlaceUpdateStrategy)
		in.ResizeDeadlineSeconds = nil
		assert.Nil(t, fromHub(t, hub).Spec.UpdateStrategy.InPlaceUpdateStrategy.ResizeDeadlineSeconds, "an edit of the hub counts")
	}
}

func TestUnreadableRecordsCountAsAbsent(t *testing.T) {
	spoke := &v1alpha1.CloneSet{}
	spoke.Annotations = map[string]string{recordAnnotation: "{"}
	assert.Empty(t, toHub(t, spoke).Annotations)

	hub := &v1beta1.CloneSet{}
	hub.Annotations = map[string]string{ignoredAnnotation: "]"}
	assert.NotContains(t, fromHub(t, hub).Annotations, ignoredAnnotation)
}

func TestLost(t *testing.T) {
	stored := &v1beta1.CloneSet{}
	stored.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{
		Type:          v1beta1.OnDelete,
		RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.InPlaceOnly},
	}
	cases := []struct {
		name   string
		change func(*v1alpha1.CloneSet)
		want   string
	}{
		{"a client that carries the record loses nothing", func(*v1alpha1.CloneSet) {}, ""},
		{
			"a client that drops the record would lose the policy",
			func(set *v1alpha1.CloneSet) { set.Annotations = nil },
			"v1alpha1 cannot express podUpdatePolicy InPlaceOnly with type OnDelete",
		},
		{
			"a client may accept the loss",
			func(set *v1alpha1.CloneSet) {
				set.Annotations = map[string]string{conversion.AcceptLossAnnotation: "true"}
			},
			"",
		},
		{
			"another type says the policy",
			func(set *v1alpha1.CloneSet) {
				set.Annotations = nil
				set.Spec.UpdateStrategy.Type = v1alpha1.ReCreate
			},
			"",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spoke := fromHub(t, stored)
			c.change(spoke)
			got := Lost(stored, toHub(t, spoke))
			if c.want == "" {
				assert.Empty(t, got)
			}
			assert.Contains(t, got, c.want)
		})
	}
}

func TestV1alpha1Path(t *testing.T) {
	for hub, want := range map[string]string{
		"spec.updateStrategy.rollingUpdate.podUpdatePolicy":                                   "spec.updateStrategy.type",
		"spec.updateStrategy.type":                                                            "spec.updateStrategy.type",
		"spec.updateStrategy.rollingUpdate.maxSurge":                                          "spec.updateStrategy.maxSurge",
		"spec.updateStrategy.rollingUpdate.scatterStrategy[1].key":                            "spec.updateStrategy.scatterStrategy[1].key",
		"spec.updateStrategy.rollingUpdate":                                                   "spec.updateStrategy",
		"spec.scaleStrategy.enablePVCReuse":                                                   "spec.scaleStrategy.disablePVCReuse",
		"spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.gracePeriodSeconds":          "spec.updateStrategy.inPlaceUpdateStrategy.gracePeriodSeconds",
		"spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.imagePreDownloadParallelism": "metadata.annotations[apps.kruise.io/image-predownload-parallelism]",
		"spec.template.spec.containers[0].image":                                              "spec.template.spec.containers[0].image",
	} {
		assert.Equal(t, want, V1alpha1Path(hub))
	}
}

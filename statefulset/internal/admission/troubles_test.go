package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// What users of OpenKruise ran into; the numbers are those of its issues.

// odd fills sets with anything that their types can hold, and leaves out anything that may be absent.
func odd(seed int64) *randfill.Filler {
	word := func(c randfill.Continue, words ...string) string { return words[c.Intn(len(words))] }
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(in *intstr.IntOrString, c randfill.Continue) {
			*in = intstr.FromString(word(c, "", "-", "%", "00%", "30%", "3-1", "0-2147483647", "x"))
			if c.Bool() {
				*in = intstr.FromInt32(c.Int31() - 1<<30)
			}
		},
		func(in *resource.Quantity, c randfill.Continue) {
			*in = *resource.NewMilliQuantity(c.Int63(), resource.DecimalSI)
		},
		func(in *appsv1.StatefulSetUpdateStrategyType, c randfill.Continue) {
			*in = appsv1.StatefulSetUpdateStrategyType(word(c, "", "RollingUpdate", "OnDelete", "x"))
		},
		func(in *v1beta1.PodUpdatePolicy, c randfill.Continue) {
			*in = v1beta1.PodUpdatePolicy(word(c, "", "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "x"))
		},
		func(in *v1beta1.VolumeClaimUpdateStrategyType, c randfill.Continue) {
			*in = v1beta1.VolumeClaimUpdateStrategyType(word(c, "", "OnDelete", "OnPodRollingUpdate"))
		},
	)
}

// oddSets is how many are validated; each commit has others.
const oddSets = 60

// 1098, 1807, 1967: absent fields and short lists let the webhooks panic.
func TestNoSetIsTooOddToBeValidated(t *testing.T) {
	featureGates := FeatureGates{StartOrdinal: true, AutoDeletePVC: true, AutoResizePVC: true, PreDownload: true}
	refused := 0
	sets := seeds.Each(t, oddSets, func(t *testing.T, seed uint64) {
		t.Helper()
		var now, old set
		odd(int64(seed)).Fill(&now)
		odd(int64(seed + 1)).Fill(&old)
		if seed%2 == 0 { // an edit of the same claims and selector reaches the rules of updates
			old = *now.DeepCopy()
			odd(int64(seed + 1)).Fill(&now.Spec.Template)
			now.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdate
			for i := range now.Spec.VolumeClaimTemplates {
				odd(int64(seed + 2)).Fill(&now.Spec.VolumeClaimTemplates[i].Spec)
			}
		}
		for range 2 {
			require.NotPanics(t, func() {
				for _, version := range []string{"v1alpha1", "v1beta1"} {
					facts := Facts{Version: version, FeatureGates: featureGates, Template: podtemplate.Change{Before: &old.Spec.Template, After: &now.Spec.Template}}
					refused += len(Validate(&now, nil, facts))
					Validate(&now, &old, facts)
					Warnings(&now, &old, featureGates)
				}
			})
			Default(&now, featureGates) // and once more with the defaults
		}
	})
	assert.True(t, sets < oddSets || refused > 0, "odd sets have faults")
}

// 995: a manifest of the built-in kind was refused once its apiVersion was changed.
func TestManifestsOfTheBuiltInKindAreValid(t *testing.T) {
	manifest := testenv.Fields(t, `
replicas: 3
serviceName: web
podManagementPolicy: OrderedReady
minReadySeconds: 600
revisionHistoryLimit: 10
selector: {matchLabels: {app: web}}
template:
  metadata: {labels: {app: web}}
  spec: {containers: [{name: main, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}]}
updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1, maxUnavailable: 2}}
persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Delete}
ordinals: {start: 5}
volumeClaimTemplates:
- metadata: {name: data, creationTimestamp: null}
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeMode: Filesystem}
  status: {phase: Pending}
`)
	s := &set{}
	s.Name = "web"
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(manifest, &s.Spec, true), "no field is unknown")
	featureGates := FeatureGates{StartOrdinal: true, AutoDeletePVC: true}
	Default(s, featureGates)
	assert.Empty(t, texts(Validate(s, nil, Facts{})))
	assert.Empty(t, Warnings(s, nil, featureGates))
}

// 997: turning a feature gate on broke the sets that were there.
func TestTurningGatesOnLeavesStoredSetsValid(t *testing.T) {
	all := FeatureGates{StartOrdinal: true, AutoDeletePVC: true, AutoResizePVC: true, PreDownload: true, DeletionProtection: true}
	old := valid(func(s *set) { s.Spec.PersistentVolumeClaimRetentionPolicy = nil })
	now := old.DeepCopy()
	now.Spec.Replicas = new(int32(3))
	Default(now, all)
	assert.Empty(t, texts(Validate(now, old, Facts{FeatureGates: all})))
}

// 2359: maxUnavailable was for Parallel only, though the built-in kind has it for both.
func TestOrderedSetsMayUpdateSeveralPodsAtATime(t *testing.T) {
	assert.Empty(t, texts(Validate(valid(rolling(func(r *strategy) { r.MaxUnavailable = number(3) })), nil, Facts{})))
}

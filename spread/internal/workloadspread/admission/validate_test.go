package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

const target = "targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"

func spread(t *testing.T, spec string) *v1beta1.WorkloadSpread {
	t.Helper()
	s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &s.Spec))
	return s
}

func TestSpecsAreValidated(t *testing.T) {
	for spec, want := range map[string]string{
		"subsets: []":           "spec.subsets: Required value: at least one subset",
		"subsets: [{name: ''}]": "spec.subsets[0].name: Required",
		"subsets: [{name: a, maxReplicas: 1}, {name: a}]":                                                                              "spec.subsets[1].name: Duplicate value",
		"subsets: [{name: a, maxReplicas: -1}]":                                                                                        "spec.subsets[0].maxReplicas: Invalid value: -1",
		"subsets: [{name: a, maxReplicas: '5'}]":                                                                                       "a percentage without fractions",
		"subsets: [{name: a, maxReplicas: 0.2%}]":                                                                                      "a percentage without fractions",
		"subsets: [{name: a, maxReplicas: -1%}]":                                                                                       "a percentage without fractions",
		"subsets: [{name: a, maxReplicas: 1}, {name: b, maxReplicas: 2%}]":                                                             "spec.subsets[1].maxReplicas: Invalid value: \"2%\": must be either numbers or percentages in all subsets",
		"subsets: [{name: a, maxReplicas: 40%}, {name: b, maxReplicas: 70%}]":                                                          "spec.subsets[1].maxReplicas: Invalid value: \"70%\": the sum of all percentages is 110",
		"subsets: [{name: a, maxReplicas: 40%}, {name: b, maxReplicas: 50%}]":                                                          "spec.subsets[0].maxReplicas: Invalid value: \"40%\": the sum of all percentages is 90",
		"subsets: [{name: a, requiredNodeSelector: {matchExpressions: [{key: z, operator: Exists, values: [x]}]}}]":                    "spec.subsets[0].requiredNodeSelector.matchExpressions[0]",
		"subsets: [{name: a, requiredNodeSelector: {matchExpressions: [{key: z, operator: Odd}]}}]":                                    "spec.subsets[0].requiredNodeSelector.matchExpressions[0].operator: Unsupported value",
		"subsets: [{name: a, requiredNodeSelector: {matchFields: [{key: zone, operator: In, values: [a]}]}}]":                          "spec.subsets[0].requiredNodeSelector.matchFields[0].key: Invalid value: \"zone\": not a valid field selector key",
		"subsets: [{name: a, requiredNodeSelector: {matchFields: [{key: metadata.name, operator: In, values: [a_b]}]}}]":               "spec.subsets[0].requiredNodeSelector.matchFields[0].values[0]",
		"subsets: [{name: a, preferredNodeSelector: [{weight: 1, preference: {matchFields: [{key: z, operator: In, values: [x]}]}}]}]": "spec.subsets[0].preferredNodeSelector[0].preference.matchFields[0].key",
		"subsets: [{name: a, preferredNodeSelector: [{weight: 101, preference: {}}]}]":                                                 "spec.subsets[0].preferredNodeSelector[0].weight",
		"subsets: [{name: a, preferredNodeSelector: [{weight: 1, preference: {matchExpressions: [{key: z, operator: In}]}}]}]":         "spec.subsets[0].preferredNodeSelector[0].preference.matchExpressions[0]",
		"subsets: [{name: a, tolerations: [{key: a, operator: Exists, value: x}]}]":                                                    "spec.subsets[0].tolerations[0].value",
		"subsets: [{name: a, tolerations: [{key: a, value: x y}]}]":                                                                    "spec.subsets[0].tolerations[0].value",
		"subsets: [{name: a, tolerations: [{operator: Equal}]}]":                                                                       "spec.subsets[0].tolerations[0].operator",
		"subsets: [{name: a, tolerations: [{key: a, effect: Odd}]}]":                                                                   "spec.subsets[0].tolerations[0].effect",
		"subsets: [{name: a, tolerations: [{key: a, tolerationSeconds: 3}]}]":                                                          "spec.subsets[0].tolerations[0].effect",
		"subsets: [{name: a, tolerations: [{key: a, operator: Gt, value: '08'}]}]":                                                     "spec.subsets[0].tolerations[0].value: Invalid value: \"08\": must be a whole number",
		"subsets: [{name: a, patch: {spec: {containers: none}}}]":                                                                      "spec.subsets[0].patch",
		"subsets: [{name: a}]\nscheduleStrategy: {type: Odd}":                                                                          "spec.scheduleStrategy.type: Unsupported value",
		"subsets: [{name: a}]\nscheduleStrategy: {adaptive: {}}":                                                                       "spec.scheduleStrategy.type",
		"subsets: [{name: a}, {name: b, maxReplicas: 1}]\nscheduleStrategy: {type: Adaptive, adaptive: {}}":                            "spec.scheduleStrategy.adaptive",
		"subsets: [{name: a}, {name: b}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 296}}":              "must be at most 295 with 2 subsets",
		"subsets: [{name: a}, {name: b}, {name: c}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 148}}":   "must be at most 147",
		"subsets: [{name: a}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: -1}}":                          "must not be negative",
		"subsets: [{name: a}]\ntargetFilter: {selector: {matchExpressions: [{key: a, operator: In}]}}":                                 "spec.targetFilter.selector",
		"subsets: [{name: a}]\ntargetFilter: {replicasPathList: [spec..x]}":                                                            "spec.targetFilter.replicasPathList[0]",

		"subsets: [{name: a}]": "",
		"subsets: [{name: a, requiredNodeSelector: {matchFields: [{key: metadata.name, operator: NotIn, values: [node-1.example]}]}}]": "",
		"subsets: [{name: a, tolerations: [{key: a, operator: Gt, value: '8'}, {key: a, operator: Lt, value: '70'}]}]":                 "",
		"subsets: [{name: a, maxReplicas: 0}]":                                                                                                       "",
		"subsets: [{name: a, maxReplicas: 40%}, {name: b, maxReplicas: 60%}]":                                                                        "",
		"subsets: [{name: a, maxReplicas: 40%}, {name: b}]":                                                                                          "",
		"subsets: [{name: a}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 9999}}":                                      "",
		"subsets: [{name: a}, {name: b}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 295}}":                            "",
		"subsets: [{name: a, requiredNodeSelector: {matchExpressions: [{key: z, operator: In, values: [x]}]}, patch: {metadata: {labels: {x: z}}}}]": "",
	} {
		errs := Validate(spread(t, target+spec), 300)
		if want == "" {
			assert.Empty(t, errs, spec)
			continue
		}
		require.NotEmpty(t, errs, spec)
		assert.Contains(t, errs.ToAggregate().Error(), want, spec)
	}
	stateful := spread(t, "targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}\nsubsets: [{name: a, maxReplicas: 100%}]")
	assert.ErrorContains(t, Validate(stateful, 300).ToAggregate(), "StatefulSets do not support percentages")
}

// shows answers each question with the ConfigMap.
type shows struct {
	client.Reader
	config *corev1.ConfigMap
}

func (s *shows) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	m, ok := o.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("asked for a %T", o)
	}
	s.config.DeepCopyInto(m)
	return nil
}

func TestTargetsAreValidated(t *testing.T) {
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: workloads.ConfigMapName},
		Data:       map[string]string{workloads.ConfigMapKey: `{"workloads":[{"Group":"example.io","kind":"GameServerSet"}]}`},
	}
	other := spread(t, "targetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: taken}")
	other.Name = "other"
	w := &Spreads{
		Spreads: &List{
			Clock: clock.RealClock{}, Admitted: func(context.Context, string) time.Time { return time.Time{} },
			Cached: func(context.Context, string) ([]*v1beta1.WorkloadSpread, error) {
				return []*v1beta1.WorkloadSpread{other}, nil
			},
		},
		Kinds:    &workloads.Config{Live: &shows{config: config}, Namespace: "system", Clock: clock.RealClock{}},
		IsExempt: func(_ context.Context, namespace string) bool { return namespace == "kube-system" },
	}
	for ref, want := range map[string]string{
		"": "spec.targetRef: Required value",
		"targetRef: {apiVersion: apps/v1, kind: Deployment}":                           "spec.targetRef.name: Required value",
		"targetRef: {apiVersion: rollouts.kruise.io/v1, kind: StatefulSet, name: a}":   `spec.targetRef.apiVersion: Unsupported value: "rollouts.kruise.io": supported values: "apps", "apps.kruise.io"`,
		"targetRef: {apiVersion: batch.volcano.sh/v1, kind: Queue, name: a}":           "add it to key " + workloads.ConfigMapKey + " of ConfigMap kruise-configuration",
		"targetRef: {apiVersion: apps/v1, kind: Deployment, name: taken}":              "WorkloadSpread other has the same target",
		"targetRef: {apiVersion: example.io/v1, kind: GameServerSet, name: a}":         "",
		"targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: taken}": "",
	} {
		errs, err := w.validateTarget(t.Context(), spread(t, ref), nil, "shop")
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, errs, ref)
			continue
		}
		require.NotEmpty(t, errs, ref)
		assert.Contains(t, errs.ToAggregate().Error(), want)
	}
	other.DeletionTimestamp = new(metav1.Now())
	errs, err := w.validateTarget(t.Context(), spread(t, "targetRef: {apiVersion: apps/v1, kind: Deployment, name: taken}"), nil, "shop")
	require.NoError(t, err)
	assert.Empty(t, errs, "the other one is about to go")
	before := spread(t, strings.Replace(target, "v1,", "v1beta2,", 1))
	errs, err = w.validateTarget(t.Context(), spread(t, target), before, "shop")
	require.NoError(t, err)
	assert.Empty(t, errs, "the version of the target does not matter")
	errs, err = w.validateTarget(t.Context(), spread(t, strings.Replace(target, "web", "api", 1)), before, "shop")
	require.NoError(t, err)
	require.ErrorContains(t, errs.ToAggregate(), "immutable")

	w.Serves = func(kind schema.GroupKind) bool { return kind.Kind == "Deployment" }
	for ref, want := range map[string][]string{
		"targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: a}": {"spec.targetRef: the cluster does not serve kind CloneSet of apps.kruise.io/v1beta1"},
		"targetRef: {apiVersion: apps/v1, kind: Deployment, name: a}":              nil,
	} {
		found, err := w.validate(t.Context(), admission.Request[*v1beta1.WorkloadSpread]{
			Operation: admissionv1.Create, DryRun: true, Namespace: "shop", New: spread(t, ref+"\nsubsets: [{name: a}]"),
		})
		require.NoError(t, err)
		assert.Empty(t, found.Errors)
		assert.Equal(t, want, found.Warnings)
	}
}

func TestWhatHasNoEffectIsToldOf(t *testing.T) {
	assert.Contains(t, warnings(spread(t, "subsets: [{name: a}, {name: b}]"))[0], `subset "a" has no maxReplicas`)
	assert.Empty(t, warnings(spread(t, "subsets: [{name: a, maxReplicas: 1}, {name: b}]")))
	assert.Empty(t, warnings(spread(t, "subsets: []")))
}

// Webhooks are called for no pod of some namespaces: the controller alone would not spread anything.
func TestExemptNamespacesAreWarnedOf(t *testing.T) {
	w := &Spreads{
		Spreads: &List{
			Clock: clock.RealClock{}, Admitted: func(context.Context, string) time.Time { return time.Time{} },
			Cached: func(context.Context, string) ([]*v1beta1.WorkloadSpread, error) {
				return []*v1beta1.WorkloadSpread{spread(t, "targetRef: {apiVersion: apps/v1, kind: Deployment, name: other}")}, nil
			},
		},
		Kinds: &workloads.Config{}, Serves: func(schema.GroupKind) bool { return true }, Templates: away{},
		IsExempt: func(_ context.Context, namespace string) bool { return namespace == "kube-system" },
	}
	for namespace, want := range map[string]int{"kube-system": 1, "shop": 0} {
		found, err := w.validate(t.Context(), admission.Request[*v1beta1.WorkloadSpread]{
			Operation: admissionv1.Create, DryRun: true, Namespace: namespace, New: spread(t, target+"subsets: [{name: a}]"),
		})
		require.NoError(t, err)
		assert.Empty(t, found.Errors)
		assert.Len(t, found.Warnings, want, namespace)
	}
}

// What strategy Adaptive deletes of a Job counts as failed.
func TestAdaptiveJobsAreWarnedOf(t *testing.T) {
	const adaptive = "scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 30}}\nsubsets: [{name: a, maxReplicas: 1}, {name: b}]"
	job := "targetRef: {apiVersion: batch/v1, kind: Job, name: web}\n"
	require.Len(t, warnings(spread(t, job+adaptive)), 1)
	assert.Contains(t, warnings(spread(t, job+adaptive))[0], "backoffLimit")
	assert.Empty(t, warnings(spread(t, job+"subsets: [{name: a, maxReplicas: 1}, {name: b}]")), "nothing is deleted")
	assert.Empty(t, warnings(spread(t, target+adaptive)))
}

// A patch for something that no pod has is taken, as the API server takes it without strict validation.
func TestFieldsThatNoPodHasAreWarnedOf(t *testing.T) {
	for patch, want := range map[string][]string{
		`{"spec":{"priorityClasName":"high","contaners":[{"name":"a"}]}}`: {
			`subset "a": patch: unknown field "spec.contaners" has no effect`,
			`subset "a": patch: unknown field "spec.priorityClasName" has no effect`,
		},
		`{"spec":{"priorityClassName":"high","$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a","$patch":"delete"}]}}`: nil,
	} {
		s := spread(t, target+"subsets: [{name: a, patch: "+patch+"}]")
		found := warnings(s)
		slices.Sort(found)
		assert.Equal(t, want, found, patch)
	}
}

// What was valid when it was stored, under a longer pause, can be labelled under a shorter one.
func TestChangesOfMetadataAreNotJudged(t *testing.T) {
	stored := spread(t, target+"subsets: [{name: a}, {name: b}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 295}}")
	labelled := stored.DeepCopy()
	labelled.Labels = map[string]string{"team": "shop"}
	w := &Spreads{Pause: 60}
	found, err := w.validate(t.Context(), admission.Request[*v1beta1.WorkloadSpread]{Operation: admissionv1.Update, Old: stored, New: labelled, Namespace: "shop"})
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.NotEmpty(t, Validate(labelled, w.Pause))
}

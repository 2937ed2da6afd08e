package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/conversion"
)

const (
	spec   = "spec."
	update = "spec.updateStrategy.rollingUpdate."
)

// rule is a change of a valid set and the one error that it leads to; no error means that it stays valid.
type rule struct {
	name   string
	change func(*set)
	want   string
}

func check(t *testing.T, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			s := valid(r.change)
			before := s.DeepCopy()
			errs := texts(Validate(s, nil, Facts{}))
			if r.want == "" {
				assert.Empty(t, errs)
			} else if assert.Len(t, errs, 1, errs) {
				assert.True(t, strings.HasPrefix(errs[0], r.want), errs[0])
			}
			assert.Equal(t, before, s, "rules change nothing")
		})
	}
}

func TestIdentity(t *testing.T) {
	check(t, []rule{
		{"the defaults are valid", func(*set) {}, ""},
		{"a name that no host may have", func(s *set) { s.Name = "web.v2" }, `metadata.name: Invalid value: "web.v2": must not contain dots`},
		{"a service that cannot be", func(s *set) { s.Spec.ServiceName = "Web" }, spec + `serviceName: Invalid value: "Web": a lowercase RFC 1123 label`},
		{"a service", func(s *set) { s.Spec.ServiceName = "web" }, ""},
		{"fields of v1beta1 that cannot be read", func(s *set) { s.Annotations = map[string]string{conversion.FieldsAnnotation: "{"} }, "metadata.annotations[apps.kruise.io/v1beta1-fields]: Invalid value: \"{\": must have only the fields that v1alpha1 lacks: "},
	})
}

func TestNumbersSelectorAndTemplate(t *testing.T) {
	check(t, []rule{
		{"absent numbers", func(s *set) { s.Spec.Replicas, s.Spec.RevisionHistoryLimit = nil, nil }, ""},
		{"negative replicas", func(s *set) { s.Spec.Replicas = new(int32(-1)) }, spec + "replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"negative history", func(s *set) { s.Spec.RevisionHistoryLimit = new(int32(-1)) }, spec + "revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"},

		{"no selector", func(s *set) { s.Spec.Selector = nil }, spec + "selector: Required value"},
		{"selector without a term", func(s *set) { s.Spec.Selector = &metav1.LabelSelector{} }, spec + "selector: Invalid value: {}: empty selector is invalid for statefulset"},
		{"selector that is none", func(s *set) { s.Spec.Selector.MatchLabels = map[string]string{"app": "*"} }, spec + `selector.matchLabels: Invalid value: "*": `},
		{"selector of other pods", func(s *set) { s.Spec.Template.Labels = map[string]string{"app": "db"} }, spec + "template.metadata.labels: Invalid value: {\"app\":\"db\"}: `selector` does not match template `labels`"},

		{"restartPolicy Always", func(s *set) { s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways }, ""},
		{"restartPolicy Never", func(s *set) { s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever }, spec + `template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
		{"activeDeadlineSeconds", func(s *set) { s.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(9)) }, spec + "template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported"},
	})
}

func TestOrdinals(t *testing.T) {
	reserve := func(entries ...intstr.IntOrString) func(*set) {
		return func(s *set) { s.Spec.ReserveOrdinals = entries }
	}
	check(t, []rule{
		{"numbers and ranges", reserve(*number(0), *text("2-5"), *text("0003-2147483647")), ""},
		{"negative number", reserve(*number(1), *number(-1)), spec + `reserveOrdinals[1]: Invalid value: "-1": entry 1: ordinal -1 is negative`},
		{"a number as text", reserve(*text("5")), spec + `reserveOrdinals[0]: Invalid value: "5": entry 0: "5" is not a valid range`},
		{"a range of three", reserve(*text("1-2-3")), spec + `reserveOrdinals[0]: Invalid value: "1-2-3": entry 0: "1-2-3" is not a valid range`},
		{"a range that runs backwards", reserve(*text("3-1")), spec + `reserveOrdinals[0]: Invalid value: "3-1": entry 0: `},
		{"a range beyond all ordinals", reserve(*text("0-2147483648")), spec + `reserveOrdinals[0]: Invalid value: "0-2147483648": entry 0: `},
		{"start", func(s *set) { s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: 7} }, ""},
		{"negative start", func(s *set) { s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: -1} }, spec + "ordinals.start: Invalid value: -1: must be greater than or equal to 0"},
	})
}

func TestPodManagementPolicy(t *testing.T) {
	check(t, []rule{
		{"Parallel", parallel, ""},
		{"none", func(s *set) { s.Spec.PodManagementPolicy = "" }, spec + "podManagementPolicy: Required value"},
		{"unknown", func(s *set) { s.Spec.PodManagementPolicy = "Serial" }, spec + `podManagementPolicy: Invalid value: "Serial": must be 'OrderedReady' or 'Parallel'`},
	})
}

func TestUpdateStrategy(t *testing.T) {
	check(t, []rule{
		{"absent members", func(s *set) { s.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{RollingUpdate: &strategy{}} }, ""},
		{"nothing at all", func(s *set) { s.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{} }, ""},
		{"unknown type", func(s *set) { s.Spec.UpdateStrategy.Type = "Random" }, spec + `updateStrategy: Invalid value: "Random": must be 'RollingUpdate' or 'OnDelete'`},
		{"OnDelete", func(s *set) {
			s.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}, ""},
		{"OnDelete beside rollingUpdate", func(s *set) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }, spec + "updateStrategy.rollingUpdate: Invalid value: "},
		{"negative partition", rolling(func(r *strategy) { r.Partition = new(int32(-1)) }), update + "partition: Invalid value: -1: must be greater than or equal to 0"},
		{"partition beyond replicas", rolling(func(r *strategy) { r.Partition = new(int32(9)) }), ""},
		{"unknown policy", rolling(func(r *strategy) { r.PodUpdatePolicy = "Recreate" }), update + `podUpdatePolicy: Invalid value: "Recreate": must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'`},
		{"in place", inPlace(v1beta1.InPlaceIfPossible), ""},
		{"in place without the readiness gate", rolling(func(r *strategy) { r.PodUpdatePolicy = v1beta1.InPlaceIfPossible }), spec + "template.spec.readinessGates: Invalid value: null: must contain InPlaceUpdateReady when podUpdatePolicy is InPlaceIfPossible"},
		{"in place only without the readiness gate", rolling(func(r *strategy) { r.PodUpdatePolicy = v1beta1.InPlaceOnly }), spec + "template.spec.readinessGates: Invalid value: null: must contain InPlaceUpdateReady when podUpdatePolicy is InPlaceOnly"},
		{"negative grace", rolling(func(r *strategy) { r.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{GracePeriodSeconds: -1} }), update + "inPlaceUpdateStrategy.gracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"parallelism of no number", rolling(func(r *strategy) {
			r.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: text("x")}
		}), update + `inPlaceUpdateStrategy.imagePreDownloadParallelism: Invalid value: "x": imagePreDownloadParallelism must be a valid integer`},
	})
}

// The manifest of a built-in set may have it, from Kubernetes 1.37 on.
func TestRecreateOfBuiltInSetsIsNamed(t *testing.T) {
	s := valid(func(s *set) { s.Spec.UpdateStrategy.Type = appsv1.RecreateStatefulSetStrategyType })
	assert.Equal(t, []string{
		spec + `updateStrategy: Invalid value: "Recreate": must be 'RollingUpdate' or 'OnDelete'`,
		spec + `updateStrategy: Invalid value: "Recreate": Recreate is for built-in StatefulSets only: scale to 0, change the template, and scale up`,
	}, texts(Validate(s, nil, Facts{})))
}

func TestOnDeleteSaysWhereRollingUpdateBelongs(t *testing.T) {
	s := valid(func(s *set) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType })
	assert.Contains(t, texts(Validate(s, nil, Facts{}))[0], "only allowed for updateStrategy 'RollingUpdate'")
}

// amounts are what is wrong with a maxUnavailable at the path.
func amounts(path string, with func(*intstr.IntOrString) func(*set)) []rule {
	percent := "a valid percent string must be a numeric string followed by an ending '%'"
	return []rule{
		{"absent", with(nil), ""},
		{"a number", with(number(1)), ""},
		{"more than all", with(text("200%")), ""},
		{"1%", with(text("1%")), ""},
		{"0", with(number(0)), path + "Invalid value: 0: should not be less than 1"},
		{"0%", with(text("0%")), path + `Invalid value: "0%": should not be less than 1`},
		{"00%", with(text("00%")), path + `Invalid value: "00%": should not be less than 1`},
		{"negative", with(number(-1)), path + "Invalid value: -1: must be greater than or equal to 0"},
		{"a number as text", with(text("5")), path + `Invalid value: "5": ` + percent},
		{"no number of percent", with(text("x%")), path + `Invalid value: "x%": ` + percent},
	}
}

func TestMaxUnavailable(t *testing.T) {
	for name, policy := range map[string]func(*set){"Parallel": parallel, "OrderedReady": func(*set) {}} {
		t.Run(name, func(t *testing.T) {
			check(t, amounts(update+"maxUnavailable: ", func(value *intstr.IntOrString) func(*set) {
				return all(policy, rolling(func(r *strategy) { r.MaxUnavailable = value }))
			}))
		})
	}
}

func TestScaleStrategy(t *testing.T) {
	scale := func(value *intstr.IntOrString) func(*set) {
		return func(s *set) { s.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: value} }
	}
	path := spec + "scaleStrategy.maxUnavailable: "
	check(t, amounts(path, func(value *intstr.IntOrString) func(*set) { return all(parallel, scale(value)) }))
	check(t, []rule{
		{"one by one is what OrderedReady does", scale(number(1)), ""},
		{"more than one with OrderedReady", scale(number(2)), path + "Invalid value: 2: can only work with Parallel PodManagementPolicyType"},
		{"percentage with OrderedReady", scale(text("1%")), path + `Invalid value: "1%": can only work with Parallel PodManagementPolicyType`},
	})
}

func TestUnorderedUpdate(t *testing.T) {
	priority := func(p workload.UpdatePriorityStrategy) func(*set) {
		return all(parallel, rolling(func(r *strategy) {
			r.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{PriorityStrategy: &p}
		}))
	}
	weight := func(weight int32, selector metav1.LabelSelector) []workload.UpdatePriorityWeightTerm {
		return []workload.UpdatePriorityWeightTerm{{Weight: weight, MatchSelector: selector}}
	}
	ok, bad := metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, metav1.LabelSelector{MatchLabels: map[string]string{"a": "*"}}
	order := func(key string) []workload.UpdatePriorityOrderTerm {
		return []workload.UpdatePriorityOrderTerm{{OrderedKey: key}}
	}
	path := update + "unorderedUpdate.priorityStrategy: Required value: "
	check(t, []rule{
		{"with OrderedReady", rolling(func(r *strategy) { r.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{} }), update + "unorderedUpdate: Required value: unorderedUpdate can only work with Parallel PodManagementPolicyType"},
		{"without priorities", all(parallel, rolling(func(r *strategy) { r.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{} })), ""},
		{"weights", priority(workload.UpdatePriorityStrategy{WeightPriority: weight(0, ok)}), ""},
		{"order", priority(workload.UpdatePriorityStrategy{OrderPriority: order("key")}), ""},
		{"both", priority(workload.UpdatePriorityStrategy{WeightPriority: weight(1, ok), OrderPriority: order("key")}), path + "only one of weightPriority and orderPriority can be used"},
		{"too heavy", priority(workload.UpdatePriorityStrategy{WeightPriority: weight(101, ok)}), path + "weight must be valid number in the range 1-100"},
		{"empty selector", priority(workload.UpdatePriorityStrategy{WeightPriority: weight(1, metav1.LabelSelector{})}), path + "selector can not be empty"},
		{"selector that is none", priority(workload.UpdatePriorityStrategy{WeightPriority: weight(1, bad)}), path + "invalid selector: "},
		{"empty key", priority(workload.UpdatePriorityStrategy{OrderPriority: order("")}), path + "order key can not be empty"},
	})
}

func TestMinReadySeconds(t *testing.T) {
	both := func(outer, inner int32) func(*set) {
		return func(s *set) {
			s.Spec.MinReadySeconds, s.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = outer, &inner
		}
	}
	inner := update + "minReadySeconds: "
	check(t, []rule{
		{"the longest", both(0, 300), ""},
		{"longer", both(0, 301), inner + "Invalid value: 301: must be no more than 300 seconds"},
		{"negative", both(0, -1), inner + "Invalid value: -1: must be greater than or equal to 0"},
		{"where the built-in kind has it", both(600, 0), ""},
		{"negative there", both(-1, 0), spec + "minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"the same in both places", both(9, 9), ""},
		{"different", both(9, 8), spec + "minReadySeconds: Invalid value: 9: must be the same as spec.updateStrategy.rollingUpdate.minReadySeconds when both are set"},
		{"beside OnDelete", func(s *set) {
			s.Spec.MinReadySeconds = 5
			s.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}, ""},
	})
}

func TestLifecycle(t *testing.T) {
	hooks := func(l workload.Lifecycle) func(*set) { return func(s *set) { s.Spec.Lifecycle = &l } }
	handler := &workload.LifecycleHook{LabelsHandler: map[string]string{"drain": "true"}}
	check(t, []rule{
		{"no hook", hooks(workload.Lifecycle{}), ""},
		{"hooks", hooks(workload.Lifecycle{PreDelete: handler, InPlaceUpdate: handler, PreNormal: &workload.LifecycleHook{FinalizersHandler: []string{"example.com/a"}}}), ""},
		{"preDelete without a handler", hooks(workload.Lifecycle{PreDelete: &workload.LifecycleHook{}}), spec + "lifecycle.preDelete: Required value: a hook needs labelsHandler or finalizersHandler"},
		{"inPlaceUpdate without a handler", hooks(workload.Lifecycle{InPlaceUpdate: &workload.LifecycleHook{MarkPodNotReady: true}}), spec + "lifecycle.inPlaceUpdate: Required value"},
		{"preNormal without a handler", hooks(workload.Lifecycle{PreNormal: &workload.LifecycleHook{}}), spec + "lifecycle.preNormal: Required value"},
		{"a label that cannot be", hooks(workload.Lifecycle{PreDelete: &workload.LifecycleHook{LabelsHandler: map[string]string{"a b": "c"}}}), spec + `lifecycle.preDelete.labelsHandler: Invalid value: "a b": `},
		{"a finalizer that cannot be", hooks(workload.Lifecycle{PreDelete: &workload.LifecycleHook{FinalizersHandler: []string{"a b"}}}), spec + `lifecycle.preDelete.finalizersHandler: Invalid value: "a b": `},
	})
}

func TestClaims(t *testing.T) {
	claims := func(claims ...corev1.PersistentVolumeClaim) func(*set) {
		return func(s *set) { s.Spec.VolumeClaimTemplates = claims }
	}
	policy := func(p retention) func(*set) {
		return func(s *set) { s.Spec.PersistentVolumeClaimRetentionPolicy = &p }
	}
	follow := func(how v1beta1.VolumeClaimUpdateStrategyType) func(*set) {
		return func(s *set) { s.Spec.VolumeClaimUpdateStrategy.Type = how }
	}
	check(t, []rule{
		{"a template twice", claims(gen.Claim("data", "1Gi"), gen.Claim("data", "1Gi")), spec + `volumeClaimTemplates[1].metadata.name: Duplicate value: "data"`},
		{"a template without a size", claims(corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		}), spec + "volumeClaimTemplates[0].spec.resources.requests[storage]: Required value"},
		{"following with pods", follow(v1beta1.OnPodRollingUpdate), ""},
		{"following some day", follow("Sometimes"), spec + `volumeClaimUpdateStrategy.type: Invalid value: "Sometimes": must be 'OnPodRollingUpdate' or 'OnDelete'`},
		{"deleting claims", policy(retention{WhenDeleted: deletes, WhenScaled: deletes}), ""},
		{"half a policy", policy(retention{WhenDeleted: deletes}), ""},
		{"unknown whenDeleted", policy(retention{WhenDeleted: "Keep", WhenScaled: retain}), spec + `persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"`},
		{"unknown whenScaled", policy(retention{WhenDeleted: retain, WhenScaled: "Keep"}), spec + `persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep": supported values: "Retain", "Delete"`},
	})
}

func TestFaultsOfTheTemplateAreReportedWithTheRest(t *testing.T) {
	fault := field.Required(specPath().Child("template", "spec", "containers"), "")
	errs := Validate(valid(func(s *set) { s.Spec.Replicas = new(int32(-1)) }), nil, Facts{Template: podtemplate.Change{Errors: field.ErrorList{fault}}})
	assert.Len(t, errs, 2)
	assert.Contains(t, errs, fault)
}

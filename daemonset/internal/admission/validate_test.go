package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
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
			errs := texts(Validate(s, nil, Facts{Version: "v1beta1"}))
			if r.want == "" {
				assert.Empty(t, errs)
			} else if assert.Len(t, errs, 1, errs) {
				assert.True(t, strings.HasPrefix(errs[0], r.want), errs[0])
			}
			assert.Equal(t, before, s, "rules change nothing")
			assert.Empty(t, texts(Validate(s.DeepCopy(), s, Facts{Version: "v1beta1"})), "a stored fault does not block edits")
		})
	}
}

func TestNumbersSelectorAndTemplate(t *testing.T) {
	check(t, []rule{
		{"the defaults are valid", func(*set) {}, ""},
		{"absent numbers", func(s *set) { s.Spec.BurstReplicas, s.Spec.RevisionHistoryLimit = nil, nil }, ""},
		{"no history", func(s *set) { s.Spec.RevisionHistoryLimit = new(int32(0)) }, ""},
		{"negative history", func(s *set) { s.Spec.RevisionHistoryLimit = new(int32(-1)) }, spec + "revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"},
		{"negative readiness", func(s *set) { s.Spec.MinReadySeconds = -1 }, spec + "minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"a burst of one", func(s *set) { s.Spec.BurstReplicas = number(1) }, ""},
		{"a share at a time", func(s *set) { s.Spec.BurstReplicas = text("1%") }, ""},
		{"none at a time", func(s *set) { s.Spec.BurstReplicas = number(0) }, spec + "burstReplicas: Invalid value: 0: must be greater than 0"},
		{"no share at a time", func(s *set) { s.Spec.BurstReplicas = text("0%") }, spec + `burstReplicas: Invalid value: "0%": must be greater than 0`},
		{"a negative burst", func(s *set) { s.Spec.BurstReplicas = number(-1) }, spec + "burstReplicas: Invalid value: -1: must be greater than or equal to 0"},
		{"more than all at a time", func(s *set) { s.Spec.BurstReplicas = text("101%") }, spec + `burstReplicas: Invalid value: "101%": must not be greater than 100%`},

		{"no selector", func(s *set) { s.Spec.Selector = nil }, spec + "selector: Required value"},
		{"selector without a term", func(s *set) { s.Spec.Selector = &metav1.LabelSelector{} }, spec + "selector: Invalid value: {}: empty selector is invalid for daemonset"},
		{"selector that is none", func(s *set) { s.Spec.Selector.MatchLabels = map[string]string{"app": "*"} }, spec + `selector.matchLabels: Invalid value: "*": `},
		{"selector of other pods", func(s *set) { s.Spec.Template.Labels = map[string]string{"app": "db"} }, spec + "template.metadata.labels: Invalid value: {\"app\":\"db\"}: `selector` does not match template `labels`"},
		{"restartPolicy Never", func(s *set) { s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever }, spec + `template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
		{"activeDeadlineSeconds", func(s *set) { s.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(9)) }, spec + "template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported"},
	})
}

func TestStrategies(t *testing.T) {
	wrong := func(r *strategy) { r.Partition, r.RollingUpdateType = number(-1), "x" }
	check(t, []rule{
		{"OnDelete", func(s *set) {
			s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.OnDeleteStrategyType}
		}, ""},
		{"OnDelete, what does not count is not judged", func(s *set) {
			rolling(wrong)(s)
			s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteStrategyType
		}, ""},
		{"unknown strategy", func(s *set) { s.Spec.UpdateStrategy.Type = "Recreate" }, `spec.updateStrategy: Unsupported value: "Recreate": supported values: "RollingUpdate", "OnDelete"`},
		{"no rolling update", func(s *set) { s.Spec.UpdateStrategy.RollingUpdate = nil }, "spec.updateStrategy.rollingUpdate: Required value"},
		{"in place", rolling(func(r *strategy) { r.RollingUpdateType = v1beta1.InPlaceRollingUpdateType }), ""},
		{"no type", rolling(func(r *strategy) { r.RollingUpdateType = "" }), ""},
		{"a type of v1alpha1", rolling(func(r *strategy) { r.RollingUpdateType = v1beta1.SurgingRollingUpdateType }), update + `rollingUpdateType: Unsupported value: "Surging": supported values: "Standard", "InPlaceIfPossible"`},
		{"policies", rolling(func(r *strategy) {
			r.UnreadyNodePolicy, r.UnselectedNodePolicy = v1beta1.SkipNodesUnreadyBeforeUpdate, v1beta1.RevertUnselectedNodes
		}), ""},
		{"another policy", rolling(func(r *strategy) { r.UnreadyNodePolicy = "Wait" }), update + `unreadyNodePolicy: Unsupported value: "Wait": supported values: "Count", "Skip", "SkipIfNotReadyBeforeUpdate"`},
		{"another policy of unselected nodes", rolling(func(r *strategy) { r.UnselectedNodePolicy = "Keep" }), update + `unselectedNodePolicy: Unsupported value: "Keep": supported values: "Ignore", "Revert"`},
		{"all nodes", rolling(func(r *strategy) { r.Selector = &metav1.LabelSelector{} }), ""},
		{"no label of nodes", rolling(func(r *strategy) { r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "*"}} }), update + `selector.matchLabels: Invalid value: "*": `},
		{"no operator", rolling(func(r *strategy) {
			r.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Like"}}}
		}), update + `selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`},
		{"partition", rolling(func(r *strategy) { r.Partition = number(1000) }), ""},
		{"all stay", rolling(func(r *strategy) { r.Partition = text("100%") }), ""},
		{"negative partition", rolling(func(r *strategy) { r.Partition = number(-1) }), update + "partition: Invalid value: -1: must be greater than or equal to 0"},
		{"more than all stay", rolling(func(r *strategy) { r.Partition = text("101%") }), update + `partition: Invalid value: "101%": must not be greater than 100%`},
		{"partition as text", rolling(func(r *strategy) { r.Partition = text("1") }), update + `partition: Invalid value: "1": a valid percent string must be a numeric string followed by an ending '%'`},
	})
}

func TestLimits(t *testing.T) {
	both := func(change func(*set)) func(*set) {
		return func(s *set) {
			s.Spec.UpdateStrategy.RollingUpdate.RollingUpdateType = v1beta1.InPlaceRollingUpdateType
			change(s)
		}
	}
	check(t, []rule{
		{"neither", limits(nil, nil), ""},
		{"unavailable alone", limits(number(1), nil), ""},
		{"a share", limits(text("100%"), text("0%")), ""},
		{"surge alone", limits(nil, number(2)), ""},
		{"surge beside 0", limits(text("0%"), text("50%")), ""},
		{"both", limits(number(1), number(1)), update + "maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"},
		{"none", limits(number(0), number(0)), update + "maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
		{"0 alone", limits(text("0%"), nil), update + "maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
		{"no surge alone", limits(nil, number(0)), update + "maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
		{"negative", limits(number(-1), nil), update + "maxUnavailable: Invalid value: -1: must be greater than or equal to 0"},
		{"more than all", limits(nil, text("101%")), update + `maxSurge: Invalid value: "101%": must not be greater than 100%`},
		{"a word beside a number", limits(text("abc"), number(1)), update + `maxUnavailable: Invalid value: "abc": a valid percent string must be a numeric string followed by an ending '%'`},
		{"a number as text", limits(text("5"), nil), update + `maxUnavailable: Invalid value: "5": a valid percent string must be a numeric string followed by an ending '%'`},
		{"in place", both(limits(number(2), nil)), ""},
		{"in place with a surge", both(limits(nil, number(1))), update + "maxSurge: Required value: must be 0 for InPlaceIfPossible type"},
	})
}

func TestHooks(t *testing.T) {
	hook := &workload.LifecycleHook{LabelsHandler: map[string]string{"hold": "true"}, FinalizersHandler: []string{"a.com/hold"}, MarkPodNotReady: true}
	check(t, []rule{
		{"preDelete", func(s *set) { s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: hook} }, ""},
		{"without handlers", func(s *set) { s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{}} }, ""},
		{"preNormal", func(s *set) { s.Spec.Lifecycle = &workload.Lifecycle{PreNormal: hook} }, ""},
		{"inPlaceUpdate", func(s *set) { s.Spec.Lifecycle = &workload.Lifecycle{InPlaceUpdate: hook} }, spec + "lifecycle.inPlaceUpdate: Forbidden: inPlaceUpdate hook of DaemonSet is not supported yet"},
		{"no label", func(s *set) {
			s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{LabelsHandler: map[string]string{"hold": "*"}}}
		}, spec + `lifecycle.preDelete.labelsHandler: Invalid value: "*": `},
	})
}

func TestV1alpha1KnowsSurging(t *testing.T) {
	s := valid(rolling(func(r *strategy) { r.RollingUpdateType = "x" }))
	assert.Equal(t, []string{update + `rollingUpdateType: Unsupported value: "x": supported values: "Standard", "InPlaceIfPossible", "Surging"`},
		texts(Validate(s, nil, Facts{Version: "v1alpha1"})))
}

func TestWhatMayChange(t *testing.T) {
	other := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
	old := valid()
	now := valid(func(s *set) { s.Spec.Selector = other })
	assert.Equal(t, []string{"spec: Forbidden: updates to daemonset spec for fields other than 'burstReplicas', 'template', 'lifecycle', " +
		"'updateStrategy', 'scaleStrategy', 'minReadySeconds' and 'revisionHistoryLimit' are forbidden, but 'selector' changed"}, texts(Validate(now, old, Facts{})))

	everything := valid(func(s *set) {
		s.Spec.Template.Spec.NodeSelector = map[string]string{"color": "blue"}
		s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.OnDeleteStrategyType}
		s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{}}
		s.Spec.BurstReplicas, s.Spec.MinReadySeconds, s.Spec.RevisionHistoryLimit = number(1), 9, new(int32(3))
		s.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
	})
	assert.Empty(t, texts(Validate(everything, old, Facts{})))
}

func TestTheClusterJudgesTemplates(t *testing.T) {
	wrong := podtemplate.Change{Errors: field.ErrorList{field.Required(field.NewPath("spec", "template", "spec", "containers"), "")}}
	assert.Equal(t, []string{"spec.template.spec.containers: Required value"}, texts(Validate(valid(), nil, Facts{Template: wrong})))
}

func TestManifestsOfTheBuiltInKindAreValid(t *testing.T) {
	manifest := testenv.Fields(t, `
minReadySeconds: 5
revisionHistoryLimit: 10
selector: {matchLabels: {app: web}}
template:
  metadata: {labels: {app: web}, creationTimestamp: null}
  spec: {hostNetwork: true, tolerations: [{operator: Exists}], containers: [{name: main, image: nginx}]}
updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%, maxSurge: 0}}
`)
	s := &set{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(manifest, &s.Spec, true), "no field is unknown")
	Default(s)
	assert.Empty(t, texts(Validate(s, nil, Facts{})))
	assert.Empty(t, Warnings(s, FeatureGates{}, nil))
}

func TestWarnings(t *testing.T) {
	partition := rolling(func(r *strategy) { r.Partition = number(1) })
	scaling := func(s *set) { s.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true} }
	revert := rolling(func(r *strategy) { r.UnselectedNodePolicy = v1beta1.RevertUnselectedNodes })
	hostPort := func(s *set) {
		s.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}
	pull := func(s *set) { s.Annotations = map[string]string{"apps.kruise.io/image-predownload-parallelism": "3"} }
	on, off := FeatureGates{PreDownload: true}, FeatureGates{}
	for name, c := range map[string]struct {
		set   *set
		gates FeatureGates
		want  string
	}{
		"nothing to say":               {valid(), off, ""},
		"partitioned scaling":          {valid(scaling, partition), off, ""},
		"scaling without partition":    {valid(scaling), off, "spec.scaleStrategy.partitionedScaling only has an effect with"},
		"scaling with OnDelete":        {valid(scaling, partition, func(s *set) { s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteStrategyType }), off, "spec.scaleStrategy.partitionedScaling only has an effect"},
		"reverting":                    {valid(revert, partition), off, ""},
		"nothing to revert":            {valid(revert), off, "spec.updateStrategy.rollingUpdate.unselectedNodePolicy only has an effect with"},
		"preNormal":                    {valid(func(s *set) { s.Spec.Lifecycle = &workload.Lifecycle{PreNormal: &workload.LifecycleHook{}} }), off, "spec.lifecycle.preNormal has no effect"},
		"a hook that holds nothing":    {valid(func(s *set) { s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{}} }), off, "spec.lifecycle.preDelete only has an effect with labelsHandler"},
		"a surge of host ports":        {valid(hostPort, limits(nil, number(1))), off, "spec.updateStrategy.rollingUpdate.maxSurge: the template uses host ports"},
		"host ports without surge":     {valid(hostPort), off, ""},
		"pulling ahead":                {valid(pull), on, ""},
		"pulling ahead without a gate": {valid(pull), off, "image pre-download has no effect: feature gate PreDownloadImageForDaemonSetUpdate of the DaemonSet operator is off"},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := Warnings(c.set, c.gates, nil)
			if c.want == "" {
				assert.Empty(t, warnings)
			} else if assert.Len(t, warnings, 1) {
				assert.Contains(t, warnings[0], c.want)
			}
		})
	}
}

// nodes are so many nodes, of which as many are labelled as chosen. One more is not eligible.
func nodes(all, chosen int) []corev1.Node {
	list := make([]corev1.Node, all+1)
	for i := range chosen {
		list[i].Labels = map[string]string{"chosen": "yes"}
	}
	list[all].Spec.Taints = []corev1.Taint{{Key: "busy", Effect: corev1.TaintEffectNoSchedule}}
	return list
}

// Who wants 2 of 3 nodes kept back gets all 3 of them updated, and the 7 others kept back.
func TestAPartitionThatKeepsBackNoneOfTheSelectedNodesIsToldOf(t *testing.T) {
	chosen := rolling(func(r *strategy) { r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"chosen": "yes"}} })
	keeping := func(p *intstr.IntOrString) func(*set) { return rolling(func(r *strategy) { r.Partition = p }) }
	const low = "spec.updateStrategy.rollingUpdate.partition: %d counts from all 10 eligible nodes, and the selector matches 3 of them: " +
		"a partition keeps selected nodes at the older revision only if it is above 7"
	for name, c := range map[string]struct {
		set   *set
		nodes []corev1.Node
		want  []string
	}{
		"2 of 10":            {valid(chosen, keeping(number(2))), nodes(10, 3), []string{fmt.Sprintf(low, 2)}},
		"7":                  {valid(chosen, keeping(number(7))), nodes(10, 3), []string{fmt.Sprintf(low, 7)}},
		"8":                  {valid(chosen, keeping(number(8))), nodes(10, 3), nil},
		"a percentage":       {valid(chosen, keeping(text("50%"))), nodes(10, 3), []string{fmt.Sprintf(low, 5)}},
		"a high percentage":  {valid(chosen, keeping(text("80%"))), nodes(10, 3), nil},
		"no partition":       {valid(chosen, keeping(number(0))), nodes(10, 3), nil},
		"no selector":        {valid(keeping(number(2))), nodes(10, 3), nil},
		"all are selected":   {valid(chosen, keeping(number(2))), nodes(10, 10), nil},
		"none is selected":   {valid(chosen, keeping(number(2))), nodes(10, 0), nil},
		"nobody knows nodes": {valid(chosen, keeping(number(2))), nil, nil},
		"OnDelete":           {valid(chosen, keeping(number(2)), func(s *set) { s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteStrategyType }), nodes(10, 3), nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Warnings(c.set, FeatureGates{}, c.nodes)) })
	}
}

// odd fills sets with anything that their types can hold, and leaves out anything that may be absent.
func odd(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(func(in *intstr.IntOrString, c randfill.Continue) {
		*in = intstr.FromString([]string{"", "-", "%", "00%", "30%", "99999999999%", "x"}[c.Intn(7)])
		if c.Bool() {
			*in = intstr.FromInt32(c.Int31() - 1<<30)
		}
	})
}

// oddSets is how many are validated; each commit has others.
const oddSets = 60

func TestNoSetIsTooOddToBeValidated(t *testing.T) {
	refused := 0
	sets := seeds.Each(t, oddSets, func(t *testing.T, seed uint64) {
		t.Helper()
		var now, old set
		odd(int64(seed)).Fill(&now)
		odd(int64(seed + 1)).Fill(&old)
		for range 2 {
			require.NotPanics(t, func() {
				for _, version := range []string{"v1alpha1", "v1beta1"} {
					refused += len(Validate(&now, nil, Facts{Version: version}))
					Validate(&now, &old, Facts{Version: version})
					Warnings(&now, FeatureGates{}, nodes(3, 2))
				}
			})
			Default(&now) // and once more with the defaults
		}
	})
	assert.True(t, sets < oddSets || refused > 0, "odd sets have faults")
}

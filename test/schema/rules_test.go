package schema

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

// ruled is a version of a kind with rules in CEL, as the API server compiles them.
type ruled struct {
	structural *schema.Structural
	rules      *cel.Validator
	messages   map[string]bool // of all its rules
}

// rulesOf returns the versions of a kind that have rules, by apiVersion.
func rulesOf(tb testing.TB, crd apiextensionsv1.CustomResourceDefinition) map[string]ruled {
	tb.Helper()
	found := map[string]ruled{}
	for _, version := range crd.Spec.Versions {
		var props apiextensions.JSONSchemaProps
		require.NoError(tb, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil))
		structural, err := schema.NewStructural(&props)
		require.NoError(tb, err)
		if rules := cel.NewValidator(structural, true, celconfig.PerCallLimit); rules != nil {
			v := ruled{structural: structural, rules: rules, messages: map[string]bool{}}
			collect(structural, v.messages)
			found[crd.Spec.Group+"/"+version.Name] = v
		}
	}
	return found
}

// collect adds the messages of all rules of a schema.
func collect(s *schema.Structural, messages map[string]bool) {
	for _, rule := range s.XValidations {
		messages[rule.Message] = true
	}
	for _, property := range s.Properties {
		collect(&property, messages)
	}
	if s.Items != nil {
		collect(s.Items, messages)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		collect(s.AdditionalProperties.Structural, messages)
	}
}

// ask returns the errors of the rules for an object that replaces another one; old is nil for a new object.
func (v ruled) ask(t *testing.T, object fuzz.Object, old any) field.ErrorList {
	t.Helper()
	errs, _ := v.rules.Validate(t.Context(), nil, v.structural, object, old, celconfig.RuntimeCELCostBudget)
	for _, err := range errs {
		assert.True(t, v.messages[err.Detail], "a rule ends without a verdict: %s", err)
	}
	return errs
}

// Objects of all kinds with rules, in each version, and one that rules refuse.
const objects = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 3
  minReadySeconds: 1
  progressDeadlineSeconds: 600
  revisionHistoryLimit: 5
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1.25"}]}}
  scaleStrategy: {maxUnavailable: 20%, podsToDelete: [web-a]}
  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 1, maxSurge: 10%, partition: 50%}
---
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1.25"}]}}
  scaleStrategy: {maxUnavailable: 2}
  updateStrategy: {maxUnavailable: 20%, maxSurge: 1, partition: 1}
---
apiVersion: apps.kruise.io/v1alpha1
kind: StatefulSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1.25"}]}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxUnavailable: 1, minReadySeconds: 5, partition: 1}}
---
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: web}
spec:
  podManagementPolicy: Parallel
  ordinals: {start: 1}
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1.25"}]}}
  scaleStrategy: {maxUnavailable: 50%}
  volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate, maxUnavailable: 20%, minReadySeconds: 5, partition: 1}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: "nginx:1.25"}]}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 1, partition: 1}}
---
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata: {name: agent}
spec:
  minReadySeconds: 3
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: "nginx:1.25"}]}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 10%, partition: 1}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: ContainerRecreateRequest
metadata: {name: restart}
spec: {podName: web-0, containers: [{name: main}], strategy: {unreadyGracePeriodSeconds: 1, minStartedSeconds: 2}, activeDeadlineSeconds: 3, ttlSecondsAfterFinished: 4}
---
apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: restart}
spec: {podName: web-0, containers: [{name: main}], strategy: {terminationGracePeriodSeconds: 1, minStartedSeconds: 2}, activeDeadlineSeconds: 3, ttlSecondsAfterFinished: 4}
---
apiVersion: policy.kruise.io/v1alpha1
kind: PodUnavailableBudget
metadata: {name: web}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minAvailable: 1}
---
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}, matchExpressions: [{key: role, operator: In, values: [a]}, {key: tier, operator: Exists}]}
  maxUnavailable: 50%
  protectOperations: [DELETE, EVICT]
  ignoredPodSelector: {matchLabels: {role: canary}}
---
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: refused}
spec: {selector: {}, ignoredPodSelector: {}, maxUnavailable: 101%}
`

// FuzzRules checks the rules in CEL with objects that the schemas accept:
//   - each rule comes to a verdict: none fails for a missing key, another type or its cost;
//   - an update that changes nothing is allowed if the object is.
func FuzzRules(f *testing.F) {
	var kinds []fuzz.CRD
	versions := map[string]ruled{}
	files := crdFiles(f)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		crd := files[file]
		rules := rulesOf(f, crd)
		if len(rules) > 0 {
			kinds = append(kinds, fuzz.ReadCRD(f, file))
		}
		for version, v := range rules {
			versions[version+" "+crd.Spec.Names.Kind] = v
		}
	}
	isAccepted := func(object fuzz.Object) bool {
		return slices.ContainsFunc(kinds, func(kind fuzz.CRD) bool { return kind.Accepts(object) })
	}
	fuzz.Objects(f, kinds, func(t *testing.T, before, after fuzz.Object) {
		t.Helper()
		version, _ := after["apiVersion"].(string)
		kind, _ := after["kind"].(string)
		v, ok := versions[version+" "+kind]
		if !ok {
			return
		}
		before, after = runtime.DeepCopyJSON(before), runtime.DeepCopyJSON(after)
		defaulting.Default(before, v.structural)
		defaulting.Default(after, v.structural)
		if !isAccepted(before) || !isAccepted(after) {
			return
		}
		v.ask(t, after, before)
		if len(v.ask(t, after, nil)) == 0 {
			assert.Empty(t, v.ask(t, after, after), "an update that changes nothing is refused")
		}
	}, fuzz.Documents(f, objects)...)
}

// Each kind with rules has a seed in each version that its rules allow.
func TestSeedsOfRulesAreAllowed(t *testing.T) {
	var wanted, allowed []string
	for file, crd := range crdFiles(t) {
		kind := fuzz.ReadCRD(t, file)
		for version, v := range rulesOf(t, crd) {
			wanted = append(wanted, version+" "+crd.Spec.Names.Kind)
			for _, raw := range fuzz.Documents(t, objects) {
				object := fuzz.Object{}
				require.NoError(t, utiljson.Unmarshal(raw, &object))
				if object["apiVersion"] == version && object["kind"] == crd.Spec.Names.Kind && kind.Accepts(object) && len(v.ask(t, object, nil)) == 0 {
					allowed = append(allowed, version+" "+crd.Spec.Names.Kind)
				}
			}
		}
	}
	assert.ElementsMatch(t, wanted, allowed)
}

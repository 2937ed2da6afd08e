package takeover

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

var cloneSets = Kind{Group: "apps.kruise.io", Version: "v1beta1", Resource: "clonesets", Name: "CloneSet"}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	parsed := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, parsed.UnmarshalJSON(encoded))
	return parsed
}

func values(t *testing.T, text string) []any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(object(t, "kind: List\nvalues: "+text).Object, "values")
	require.NoError(t, err)
	return list
}

func TestRulesAreDivided(t *testing.T) {
	cases := []struct{ name, rule, stays, leaves string }{
		{"of the kind", "{apiGroups: [apps.kruise.io], resources: [clonesets]}", "[]", "[{apiGroups: [apps.kruise.io], resources: [clonesets]}]"},
		{"of a subresource", "{apiGroups: [apps.kruise.io], resources: [clonesets/scale]}", "[]", "[{apiGroups: [apps.kruise.io], resources: [clonesets/scale]}]"},
		{"of another kind", "{apiGroups: [apps.kruise.io], resources: [sidecarsets]}", "[{apiGroups: [apps.kruise.io], resources: [sidecarsets]}]", "[]"},
		{"of a kind of that name in another group", "{apiGroups: [apps], resources: [clonesets]}", "[{apiGroups: [apps], resources: [clonesets]}]", "[]"},
		{"of everything", "{apiGroups: ['*'], resources: ['*']}", "[{apiGroups: ['*'], resources: ['*']}]", "[]"},
		{
			"of two kinds", "{apiGroups: [apps.kruise.io], operations: [DELETE], resources: [sidecarsets, clonesets]}",
			"[{apiGroups: [apps.kruise.io], operations: [DELETE], resources: [sidecarsets]}]",
			"[{apiGroups: [apps.kruise.io], operations: [DELETE], resources: [clonesets]}]",
		},
		{
			"of two groups", "{apiGroups: [apps, apps.kruise.io], resources: [deployments, clonesets]}",
			"[{apiGroups: [apps.kruise.io], resources: [deployments]}, {apiGroups: [apps], resources: [deployments, clonesets]}]",
			"[{apiGroups: [apps.kruise.io], resources: [clonesets]}]",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stays, leaves := divideRule(values(t, "["+c.rule+"]")[0], []Kind{cloneSets})

			assert.ElementsMatch(t, values(t, c.stays), stays)
			assert.ElementsMatch(t, values(t, c.leaves), leaves)
		})
	}
}

const configuration = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kruise-mutating-webhook-configuration}
webhooks:
- {name: pods, timeoutSeconds: 10, rules: [{apiGroups: [""], resources: [pods]}]}
- {name: sets, timeoutSeconds: 10, rules: [{apiGroups: [apps.kruise.io], resources: [clonesets]}]}
- {name: all, timeoutSeconds: 10, rules: [{apiGroups: [apps.kruise.io], resources: [clonesets, sidecarsets]}]}
`

func TestConfigurationsLoseRulesAndGetThemBack(t *testing.T) {
	for name, template := range map[string]string{"the list only": "", "with a template": "[]"} {
		t.Run(name, func(t *testing.T) {
			before := object(t, configuration)
			if template != "" {
				// What the manager does not serve is in the template only.
				before.SetAnnotations(map[string]string{"template": `[{"name":"sets","rules":[{"apiGroups":["apps.kruise.io"],"resources":["clonesets"]}]},{"name":"off","rules":[{"apiGroups":["apps.kruise.io"],"resources":["sidecarsets"]}]}]`})
			}

			after, removed, err := leave(before, []Kind{cloneSets})

			require.NoError(t, err)
			assert.Equal(t, values(t, `
- {name: pods, timeoutSeconds: 10, rules: [{apiGroups: [""], resources: [pods]}]}
- {name: all, timeoutSeconds: 10, rules: [{apiGroups: [apps.kruise.io], resources: [sidecarsets]}]}`), after.Object["webhooks"])
			assert.Equal(t, []string{"sets", "all"}, removed.Names())
			if template != "" {
				assert.JSONEq(t, `[{"name":"off","rules":[{"apiGroups":["apps.kruise.io"],"resources":["sidecarsets"]}]}]`, after.GetAnnotations()["template"])
			} else {
				assert.NotContains(t, after.GetAnnotations(), "template")
			}
			again, nothing, err := leave(after, []Kind{cloneSets})
			require.NoError(t, err)
			assert.True(t, nothing.Empty())
			assert.Equal(t, after, again)

			back, err := giveBack(after, removed)
			require.NoError(t, err)
			_, more, err := leave(back, []Kind{cloneSets})
			require.NoError(t, err)
			assert.ElementsMatch(t, removed.List, more.List)
			assert.ElementsMatch(t, removed.Template, more.Template)
			twice, err := giveBack(back, removed)
			require.NoError(t, err)
			assert.Equal(t, back, twice)
		})
	}
}

func TestATemplateThatCannotBeReadStaysAsItIs(t *testing.T) {
	before := object(t, configuration)
	before.SetAnnotations(map[string]string{"template": "?"})

	_, _, err := leave(before, []Kind{cloneSets})

	assert.ErrorContains(t, err, "read annotation template of kruise-mutating-webhook-configuration")
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	_, removed, err := leave(object(t, configuration), []Kind{cloneSets})
	require.NoError(t, err)
	var record Record
	record.add(Record{
		Webhooks: map[string]Removed{"a": removed}, Definitions: map[string]any{"b": map[string]any{"port": int64(443)}},
		Labels:      map[string]map[string]string{"b": {"app.kubernetes.io/managed-by": "Helm"}},
		Annotations: map[string]map[string]string{"b": {"meta.helm.sh/release-name": "kruise"}}, Gates: []string{"c"},
	})
	stored := openkruise.RecordOf("cloneset")
	require.NoError(t, record.write(stored))

	read, err := readRecord(stored)

	require.NoError(t, err)
	assert.Equal(t, record, read)
	read.add(Record{Webhooks: map[string]Removed{"a": removed}, Definitions: map[string]any{"b": "Flotilla's"}, Gates: []string{"c", "d"}})
	assert.Equal(t, record.Webhooks, read.Webhooks)
	assert.Equal(t, record.Definitions, read.Definitions)
	assert.Equal(t, []string{"c", "d"}, read.Gates)
}

// A ConfigMap holds one MiB; no feature has more CRDs than jobs.
func TestRecordsOfAllDefinitionsFit(t *testing.T) {
	features, err := catalog.Select("jobs")
	require.NoError(t, err)
	manifests, err := install.Manifests(features[0], install.Settings{})
	require.NoError(t, err)
	record := Record{Definitions: map[string]any{}}
	for _, object := range manifests {
		if object.GetKind() == crdKind {
			record.Definitions[object.GetName()] = object.Object["spec"]
		}
	}
	stored := openkruise.RecordOf("jobs")
	require.NoError(t, record.write(stored))
	encoded, _, err := unstructured.NestedString(stored.Object, "binaryData", recordKey)
	require.NoError(t, err)
	assert.Len(t, record.Definitions, 4)
	assert.Less(t, len(encoded), 1<<20)
}

func TestGates(t *testing.T) {
	budget, jobs := gatesOf("budget"), gatesOf("jobs")
	cases := []struct {
		name      string
		gates     []gate
		arguments []string
		off       []string
		then      []string
	}{
		{"no flag", budget, []string{"--v=4"}, []string{"PodUnavailableBudgetDeleteGate"}, []string{"--v=4", "--feature-gates=PodUnavailableBudgetDeleteGate=false"}},
		{"an empty flag", budget, []string{"--feature-gates=", "--v=4"}, []string{"PodUnavailableBudgetDeleteGate"}, []string{"--v=4", "--feature-gates=PodUnavailableBudgetDeleteGate=false"}},
		{
			"others stay", budget, []string{"--feature-gates=A=true,PodUnavailableBudgetUpdateGate=true"},
			[]string{"PodUnavailableBudgetDeleteGate", "PodUnavailableBudgetUpdateGate"},
			[]string{"--feature-gates=A=true,PodUnavailableBudgetDeleteGate=false,PodUnavailableBudgetUpdateGate=false"},
		},
		{"off by default", jobs, []string{"--v=4"}, nil, []string{"--v=4"}},
		{"off already", budget, []string{"--feature-gates=PodUnavailableBudgetDeleteGate=False"}, nil, []string{"--feature-gates=PodUnavailableBudgetDeleteGate=False"}},
		{"no gate", gatesOf("cloneset"), []string{"--v=4"}, nil, []string{"--v=4"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			next, names := withGates(deployment(t, c.arguments), c.gates, false)

			assert.Equal(t, c.off, names)
			assert.Equal(t, deployment(t, c.then), next)
			_, none := withGates(next, c.gates, false)
			assert.Empty(t, none)
			if len(names) > 0 {
				var off []gate
				for _, name := range names {
					off = append(off, gate{name: name})
				}
				_, back := withGates(next, off, true)
				assert.Equal(t, names, back)
			}
		})
	}
}

func deployment(t *testing.T, arguments []string) *unstructured.Unstructured {
	t.Helper()
	manager := object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: kruise-system, name: old}\nspec: {template: {spec: {containers: [{name: manager}]}}}")
	containers, _, _ := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "containers")
	require.NoError(t, unstructured.SetNestedStringSlice(containers[0].(map[string]any), arguments, "args"))
	require.NoError(t, unstructured.SetNestedSlice(manager.Object, containers, "spec", "template", "spec", "containers"))
	return manager
}

func pod(t *testing.T, name, rest string) unstructured.Unstructured {
	t.Helper()
	return *object(t, "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop, name: "+name+", uid: "+name+", resourceVersion: '1', labels: {a: b}, ownerReferences: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}]}\n"+rest)
}

func TestPodsAreCompared(t *testing.T) {
	const life = "status: {phase: Running, containerStatuses: [{name: main, restartCount: 0, containerID: x}]}"
	cases := []struct {
		name string
		then func(pod *unstructured.Unstructured) *unstructured.Unstructured
		want []string
	}{
		{"a heartbeat", func(p *unstructured.Unstructured) *unstructured.Unstructured {
			p.SetResourceVersion("2")
			p.Object["status"].(map[string]any)["phase"] = "Unknown"
			return p
		}, nil},
		{"a label", func(p *unstructured.Unstructured) *unstructured.Unstructured {
			p.SetLabels(map[string]string{"a": "c"})
			p.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "before", Operation: metav1.ManagedFieldsOperationUpdate},
				{Manager: "kubectl-label", Operation: metav1.ManagedFieldsOperationUpdate},
				{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"},
			})
			return p
		}, []string{"shop/a was written by kubectl-label"}},
		{"an image", func(p *unstructured.Unstructured) *unstructured.Unstructured {
			p.Object["spec"] = map[string]any{"image": "b"}
			return p
		}, []string{"shop/a was written"}},
		{"a restart", func(*unstructured.Unstructured) *unstructured.Unstructured {
			p := pod(t, "a", "status: {containerStatuses: [{name: main, restartCount: 1, containerID: y}]}")
			return &p
		}, []string{"shop/a: container main was restarted: Killing by kubelet: Stopping container main"}},
		{"a deletion", func(*unstructured.Unstructured) *unstructured.Unstructured { return nil }, []string{"shop/a is gone: Killing by kubelet: Stopping container main"}},
		{"a deletion that has begun", func(p *unstructured.Unstructured) *unstructured.Unstructured {
			p.SetDeletionTimestamp(new(metav1.Now()))
			p.SetDeletionGracePeriodSeconds(new(int64(30)))
			return p
		}, []string{"shop/a is being deleted: Killing by kubelet: Stopping container main"}},
		{"another pod", func(*unstructured.Unstructured) *unstructured.Unstructured {
			p := pod(t, "b", life)
			return &p
		}, []string{"shop/a is gone: Killing by kubelet: Stopping container main"}},
	}
	events := []unstructured.Unstructured{
		event(t, "{uid: a, namespace: shop}", "10:00:02", "Killing", "kubelet", "Stopping container main"),
		event(t, "{uid: a, namespace: shop}", "10:00:01", "Started", "kubelet", "Started container main"),
		event(t, "{uid: set, namespace: shop}", "10:00:03", "SuccessfulDelete", "kruise", "deleted pod shop/a-1 of b-a and a1"),
		event(t, "{uid: set, namespace: other}", "10:00:03", "SuccessfulDelete", "kruise", "deleted pod a"),
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := pod(t, "a", life)
			before.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "before", Operation: metav1.ManagedFieldsOperationUpdate}})
			was, err := remember([]unstructured.Unstructured{before})
			require.NoError(t, err)
			require.Len(t, was, 1)
			p := pod(t, "a", life)
			var pods []unstructured.Unstructured
			if next := c.then(&p); next != nil {
				pods = append(pods, *next)
			}
			is, err := remember(pods)
			require.NoError(t, err)

			assert.Equal(t, c.want, changed(was, is, events))
		})
	}
	other := pod(t, "a", life)
	other.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet"}})
	others, err := remember([]unstructured.Unstructured{other})
	require.NoError(t, err)
	assert.Empty(t, others, "pods of other kinds are not looked at")
}

// A pod that is gone is told of by its owner, too.
func TestTheOwnerTellsWhyAPodIsGone(t *testing.T) {
	was, err := remember([]unstructured.Unstructured{pod(t, "a", "")})
	require.NoError(t, err)
	assert.Equal(t, []string{"shop/a is gone: SuccessfulDelete by kruise: deleted pod a, which is old"}, changed(was, nil, []unstructured.Unstructured{
		event(t, "{uid: set, namespace: shop}", "10:00:00", "SuccessfulDelete", "kruise", "deleted pod a, which is old"),
	}))
	assert.Equal(t, []string{"shop/a is gone"}, changed(was, nil, nil))
}

func event(t *testing.T, about, at, reason, by, message string) unstructured.Unstructured {
	t.Helper()
	return *object(t, fmt.Sprintf("{apiVersion: v1, kind: Event, involvedObject: %s, lastTimestamp: '2030-01-01T%sZ', reason: %s, source: {component: %s}, message: '%s'}",
		about, at, reason, by, message))
}

func TestPlansSayWhatChangesAndWhatCannotBeHad(t *testing.T) {
	features, err := catalog.Select("spread")
	require.NoError(t, err)
	manifests, err := install.Manifests(features[0], install.Settings{})
	require.NoError(t, err)
	old := object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloadspreads.apps.kruise.io, annotations: {meta.helm.sh/release-name: kruise, meta.helm.sh/release-namespace: default}}
spec: {versions: [{name: v1alpha1, storage: true}]}`)
	world := World{
		Account:  "system:serviceaccount:kruise-system:kruise-manager",
		Managers: []*unstructured.Unstructured{deployment(t, []string{"--v=4"})},
		CRDs:     map[string]*unstructured.Unstructured{old.GetName(): old},
		Objects:  map[string]int{old.GetName(): 2}, Pods: map[string]int{},
	}

	plan, err := planOf("spread", manifests, world)

	require.NoError(t, err)
	var out bytes.Buffer
	plan.print(&out)
	assert.Equal(t, `spread
  WorkloadSpread: 2 objects, 0 pods
    CustomResourceDefinition workloadspreads.apps.kruise.io: gets the unserved version "flotilla" first, so that the old manager skips it
    CustomResourceDefinition workloadspreads.apps.kruise.io: converted by Service flotilla-system/spread-webhook (before: none)
    CustomResourceDefinition workloadspreads.apps.kruise.io: stores objects as v1alpha1 as before, until flotilla takeover --finish
    no change to objects and pods
  ValidatingAdmissionPolicy flotilla-takeover-spread: new; rejects writes of system:serviceaccount:kruise-system:kruise-manager to these kinds and to objects that they own
  ValidatingAdmissionPolicy flotilla-takeover-spread-crds: new; rejects the deletion of these CRDs, which would delete all objects
  Deployment kruise-system/old: restarts, with feature gates off: WorkloadSpread
  flotilla install spread: permissions, manager and webhooks in namespace flotilla-system
  limitations:
    OpenKruise's manager tries these writes again and logs each rejection
    requests in other versions than the stored one fail for some seconds while the operator starts
    Helm release default/kruise manages OpenKruise: its next upgrade reverts the takeover. Run the command again after it
`, out.String())
}

// Flotilla's jobs use NodeImages in v1beta1, and the node agent stays with OpenKruise until the end.
func TestThePlanTellsWhetherImagesArePulled(t *testing.T) {
	nodeImages := func(served bool, versions ...any) *unstructured.Unstructured {
		crd := &unstructured.Unstructured{}
		crd.SetName("nodeimages.apps.kruise.io")
		var list []any
		for _, name := range versions {
			list = append(list, map[string]any{"name": name, "served": served})
		}
		crd.Object["spec"] = map[string]any{"versions": list}
		return crd
	}
	cases := []struct {
		name, feature string
		crd           *unstructured.Unstructured
		told          bool
	}{
		{"no node agent", "jobs", nil, true},
		{"the old version alone", "jobs", nodeImages(true, "v1alpha1"), true},
		{"not served", "jobs", nodeImages(false, "v1alpha1", "v1beta1"), true},
		{"both", "jobs", nodeImages(true, "v1alpha1", "v1beta1"), false},
		{"another feature", "cloneset", nil, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			world := World{CRDs: map[string]*unstructured.Unstructured{}}
			if c.crd != nil {
				world.CRDs[c.crd.GetName()] = c.crd
			}

			plan, err := planOf(c.feature, nil, world)

			require.NoError(t, err)
			told := slices.ContainsFunc(plan.Limits, func(limit string) bool { return strings.Contains(limit, "ImagePullJobs pull no image") })
			assert.Equal(t, c.told, told, plan.Limits)
		})
	}
}

func TestGuardsAreKept(t *testing.T) {
	crd := object(t, "kind: CustomResourceDefinition\nspec: {versions: [{name: v1beta1, storage: true}]}")
	guarded := apply.Guard(crd)

	assert.False(t, apply.Guarded(crd), "the object itself stays")
	assert.True(t, apply.Guarded(guarded))
	assert.Equal(t, guarded, apply.Guard(guarded))
	assert.Equal(t, guarded, apply.KeepGuard(guarded, crd))
	assert.Equal(t, crd, apply.KeepGuard(crd, crd))
	assert.Equal(t, crd, apply.KeepGuard(nil, crd))
	assert.Equal(t, crd.Object["spec"], apply.Unguard(guarded).Object["spec"])
	assert.Equal(t, crd, apply.Unguard(crd))
}

// An operator's CRD stores objects in its own version, but for those of a CRD that was taken over, also when it is installed again.
func TestStorageVersionsAreKept(t *testing.T) {
	ours := object(t, "kind: CustomResourceDefinition\nspec: {versions: [{name: v1alpha1, storage: false}, {name: v1beta1, storage: true}]}")
	theirs := object(t, "kind: CustomResourceDefinition\nspec: {versions: [{name: v1alpha1, storage: true}]}")

	taken := apply.TakenOver(theirs, ours)

	assert.Equal(t, "v1alpha1", apply.StorageVersion(taken))
	assert.True(t, apply.Guarded(taken))
	assert.Equal(t, taken, apply.KeepGuard(taken, ours))
	assert.Equal(t, "v1beta1", apply.StorageVersion(apply.Store(taken, "v1beta1")))
	assert.Equal(t, "v1beta1", apply.StorageVersion(apply.TakenOver(nil, ours)), "a CRD that OpenKruise does not have")
	assert.Equal(t, "v1beta1", apply.StorageVersion(apply.KeepGuard(theirs, ours)), "an install where nothing was taken over")
	assert.Equal(t, "v1beta1", apply.StorageVersion(ours), "the object itself stays")
	assert.Equal(t, ours, apply.Store(ours, "v2"), "a version that it does not have")
}

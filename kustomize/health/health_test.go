package health

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// installed returns the report of a feature whose objects are as the manifests say and do their work.
func installed(t *testing.T, name string, change func(live map[string]*unstructured.Unstructured)) *Report {
	t.Helper()
	features, err := catalog.Select(name)
	require.NoError(t, err)
	wanted, err := install.Manifests(features[0], install.Settings{})
	require.NoError(t, err)
	bundle := authority(t, time.Unix(0, 0).Add(time.Hour))
	report := &Report{Feature: name, Available: features[0].Version, wanted: wanted, live: map[string]*unstructured.Unstructured{}}
	for _, object := range wanted {
		live := object.DeepCopy()
		switch live.GetKind() {
		case "Deployment":
			live.Object["status"] = map[string]any{"replicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1)}
		case "CustomResourceDefinition":
			live.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
			require.NoError(t, unstructured.SetNestedField(live.Object, bundle, "spec", "conversion", "webhook", "clientConfig", "caBundle"))
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			webhooks, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
			for _, webhook := range webhooks {
				require.NoError(t, unstructured.SetNestedField(webhook.(map[string]any), bundle, "clientConfig", "caBundle"))
			}
			live.Object["webhooks"] = webhooks
		}
		report.live[apply.Describe(object)] = live
	}
	if change != nil {
		change(report.live)
	}
	report.manager = report.live["Deployment flotilla-system/"+name+"-manager"]
	report.judge()
	return report
}

func authority(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: end, IsCA: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

func setImage(t *testing.T, live map[string]*unstructured.Unstructured, name, image string) {
	t.Helper()
	manager := live["Deployment flotilla-system/"+name+"-manager"]
	containers, _, _ := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = image
	require.NoError(t, unstructured.SetNestedSlice(manager.Object, containers, "spec", "template", "spec", "containers"))
}

// What the doctor finds by looking at objects, one fault at a time.
func TestDoctorFinds(t *testing.T) {
	cases := []struct {
		name   string
		change func(live map[string]*unstructured.Unstructured)
		want   []string
	}{
		{"nothing", nil, nil},
		{
			"a manager that is not available",
			func(live map[string]*unstructured.Unstructured) {
				delete(live["Deployment flotilla-system/spread-manager"].Object, "status")
			},
			[]string{"Deployment flotilla-system/spread-manager 0 of 1 pods are updated"},
		},
		{
			"a manager whose pods are refused",
			func(live map[string]*unstructured.Unstructured) {
				live["Deployment flotilla-system/spread-manager"].Object["status"] = map[string]any{"conditions": []any{map[string]any{
					"type": "ReplicaFailure", "status": "True", "message": `pods "a" is forbidden: violates PodSecurity "restricted"`,
				}}}
			},
			[]string{`Deployment flotilla-system/spread-manager 0 of 1 pods are updated: pods "a" is forbidden: violates PodSecurity "restricted"`},
		},
		{
			"a binding that is gone",
			func(live map[string]*unstructured.Unstructured) { delete(live, "ClusterRoleBinding spread-manager") },
			[]string{"ClusterRoleBinding spread-manager is missing"},
		},
		{
			"a role with fewer rules",
			func(live map[string]*unstructured.Unstructured) {
				role := live["ClusterRole spread-manager"]
				rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
				role.Object["rules"] = rules[1:]
			},
			[]string{"field rules of ClusterRole spread-manager differs from the manifests"},
		},
		{
			"a role with more rules",
			func(live map[string]*unstructured.Unstructured) {
				role := live["ClusterRole spread-manager"]
				rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
				role.Object["rules"] = append(rules, map[string]any{"verbs": []any{"get"}})
			},
			nil,
		},
		{
			"an old manager",
			func(live map[string]*unstructured.Unstructured) {
				setImage(t, live, "spread", "registry.example:5000/flotilla/spread-manager:v0.0.9")
			},
			[]string{"version v0.0.9 is out of date"},
		},
		{
			"a manager that is newer than the command",
			func(live map[string]*unstructured.Unstructured) {
				setImage(t, live, "spread", "registry.example:5000/flotilla/spread-manager:v9.0.0")
			},
			[]string{"version v9.0.0 is newer than this command, which has v0.1.0"},
		},
		{
			"webhooks that are not enforced yet",
			func(live map[string]*unstructured.Unstructured) {
				live["ValidatingWebhookConfiguration spread-validating"], _ = apply.Lenient(live["ValidatingWebhookConfiguration spread-validating"])
			},
			[]string{"ValidatingWebhookConfiguration spread-validating ignores failures, because the installation ended before the operator was ready"},
		},
		{
			"a CRD that another operator converts",
			func(live map[string]*unstructured.Unstructured) {
				crd := live["CustomResourceDefinition workloadspreads.apps.kruise.io"]
				require.NoError(t, unstructured.SetNestedField(crd.Object, "kruise-webhook-service", "spec", "conversion", "webhook", "clientConfig", "service", "name"))
			},
			[]string{"another controller also manages workloadspreads.apps.kruise.io: their CRD is converted by Service kruise-webhook-service"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			report := installed(t, "spread", c.change)
			var got []string
			for _, findings := range [][]Finding{
				owners(report, nil), faults(report), certificates(report, time.Unix(0, 0)), rights(report), skew([]*Report{report}),
			} {
				for _, finding := range findings {
					assert.Equal(t, "spread", finding.About)
					assert.NotEmpty(t, finding.Help)
					got = append(got, finding.Trouble)
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestCertificatesThatHaveEnded(t *testing.T) {
	report := installed(t, "spread", nil)

	findings := certificates(report, time.Unix(0, 0).Add(2*time.Hour))

	require.Len(t, findings, 3, "two configurations and a CRD")
	assert.Contains(t, findings[0].Trouble, "its CA expired at 1970-01-01T01:00:00Z")
	assert.Equal(t, "its CA bundle cannot be read", judgeBundle("?", time.Unix(0, 0)))
	assert.Equal(t, "its CA bundle has no certificate", judgeBundle("YQ==", time.Unix(0, 0)))
}

func TestWebhooksOfAnotherOperator(t *testing.T) {
	report := installed(t, "spread", nil)
	configuration := func(service, group, resource string) unstructured.Unstructured {
		o := unstructured.Unstructured{Object: map[string]any{"webhooks": []any{map[string]any{
			"clientConfig": map[string]any{"service": map[string]any{"name": service}},
			"rules":        []any{map[string]any{"apiGroups": []any{group}, "resources": []any{resource}}},
		}}}}
		o.SetKind("MutatingWebhookConfiguration")
		o.SetName("kruise-mutating-webhook-configuration")
		return o
	}

	findings := owners(report, []unstructured.Unstructured{
		configuration("spread-webhook", "apps.kruise.io", "workloadspreads"),
		configuration("policy-engine", "*", "*"),
		configuration("kruise-webhook-service", "apps.kruise.io", "sidecarsets"),
		configuration("kruise-webhook-service", "apps.kruise.io", "workloadspreads"),
	})

	require.Len(t, findings, 1)
	assert.Equal(t, "another controller also manages workloadspreads.apps.kruise.io: MutatingWebhookConfiguration "+
		"kruise-mutating-webhook-configuration sends them to Service kruise-webhook-service", findings[0].Trouble)
}

func TestManagersOfDifferentMinorVersions(t *testing.T) {
	reports := []*Report{
		{Feature: "budget", Installed: true, Version: "v0.2.0"}, {Feature: "jobs", Installed: true, Version: "v0.1.3"},
		{Feature: "spread", Installed: true, Version: "latest"}, {Feature: "daemon", Version: "v0.9.0"},
	}
	findings := skew(reports)
	require.Len(t, findings, 1)
	assert.Equal(t, "managers have different minor versions: v0.1 (jobs), v0.2 (budget)", findings[0].Trouble)
	assert.False(t, isFault(findings[0]), "such managers work together")
	assert.True(t, isFault(Finding{}))
	var out bytes.Buffer
	tell(surroundings{installed: 2})(&out, findings)
	assert.Equal(t, "no problem found\nnote: cluster: managers have different minor versions: v0.1 (jobs), v0.2 (budget)\n"+
		"  They work together; upgrade the older ones when you can.\n", out.String())
}

func TestStatusIsATable(t *testing.T) {
	reports := []*Report{
		{Feature: "budget", Available: "v0.1.0"},
		{Feature: "jobs", Installed: true, Version: "v0.0.9", Available: "v0.1.0", OutOfDate: true, Healthy: true},
		{Feature: "spread", Installed: true, Version: "v0.1.0", Available: "v0.1.0", Faults: []string{"Service a is missing", "b", "c"}},
	}
	var out bytes.Buffer
	table(&out, reports)
	assert.Equal(t, "FEATURE   VERSION   HEALTH          MESSAGE\n"+
		"budget    -         not installed   \n"+
		"jobs      v0.0.9    healthy         out of date: this command installs v0.1.0\n"+
		"spread    v0.1.0    unhealthy       Service a is missing, and 2 more\n", out.String())
	err := ill(reports)
	require.ErrorContains(t, err, "unhealthy: spread;")
	assert.Equal(t, cli.NotSo, cli.CodeOf(err))
	require.NoError(t, ill(reports[:2]))
}

func TestTagsOfImages(t *testing.T) {
	cases := map[string]string{
		"registry.example:5000/a:v1.2.3": "v1.2.3", "registry.example:5000/a": "latest", "a@sha256:abc": "v1.0.0+abc",
		"a:v1@sha256:abc": "v1", "a@sha256:0123456789abcdef": "v1.0.0+0123456789ab",
	}
	for image, want := range cases {
		deployment := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"image": image}},
		}}}}}
		deployment.SetLabels(map[string]string{"app.kubernetes.io/version": "v1.0.0"})
		assert.Equal(t, want, tag(deployment), image)
	}
}

func TestVersionsOfKinds(t *testing.T) {
	report := installed(t, "jobs", nil)
	versions := versionsOf(report)
	assert.Equal(t, report.Available, versions.Installed)
	assert.Equal(t, []string{"v1alpha1", "v1beta1"}, versions.Kinds["BroadcastJob"])
	var out bytes.Buffer
	versionTable(&out, []Versions{versions})
	assert.Contains(t, out.String(), "BroadcastJob v1alpha1,v1beta1; ImageListPullJob")
}

// Whoever types a command that is told gets what it says: it ends the line, and is about the one manager.
func TestWhatDoesNotWorkComesFirst(t *testing.T) {
	report := installed(t, "jobs", func(live map[string]*unstructured.Unstructured) {
		delete(live["Deployment flotilla-system/jobs-manager"].Object, "status")
		for _, object := range live {
			if object.GetKind() == "CustomResourceDefinition" {
				require.NoError(t, unstructured.SetNestedField(object.Object, "", "spec", "conversion", "webhook", "clientConfig", "caBundle"))
			}
		}
	})

	found := faults(report)

	assert.Equal(t, []Finding{
		{
			About: "jobs", Trouble: "Deployment flotilla-system/jobs-manager 0 of 1 pods are updated",
			Help: "Check its pods: kubectl -n flotilla-system describe pods -l app.kubernetes.io/name=jobs-manager",
		},
		{
			About: "jobs", Trouble: "CustomResourceDefinition advancedcronjobs.apps.kruise.io has no CA yet, and 3 more",
			Help: "The operator writes the CA. Find the cause in its log: kubectl -n flotilla-system logs deployment/jobs-manager",
		},
	}, found)
	assert.Equal(t, "Deployment flotilla-system/jobs-manager 0 of 1 pods are updated, and 4 more", summary(report.Faults))
}

// While a feature changes hands there is one thing to do: an install refuses.
func TestATakeoverIsTheHelp(t *testing.T) {
	report := installed(t, "jobs", func(live map[string]*unstructured.Unstructured) {
		delete(live, "ValidatingWebhookConfiguration jobs-validating")
	})
	assert.Equal(t, "Install it again: flotilla install jobs", faults(report)[0].Help)
	report.Takeover = "its takeover from OpenKruise was interrupted"
	assert.Equal(t, []Finding{{About: "jobs", Trouble: "ValidatingWebhookConfiguration jobs-validating is missing"}}, faults(report))
}

func TestTheDoctorOfNothing(t *testing.T) {
	for seen, want := range map[surroundings]string{
		{}:                 "no operator is installed. To install all features: flotilla install all\n",
		{openKruise: true}: "no operator is installed, but OpenKruise is. To take over its kinds, begin with: flotilla takeover all --dry-run\n",
		{installed: 1}:     "no problem found\n",
	} {
		var out bytes.Buffer
		tell(seen)(&out, nil)
		assert.Equal(t, want, out.String())
	}
}

// Installing again brings no CA: the manager does.
func TestAMissingCAIsTheManagersAffair(t *testing.T) {
	report := installed(t, "spread", func(live map[string]*unstructured.Unstructured) {
		crd := live["CustomResourceDefinition workloadspreads.apps.kruise.io"]
		require.NoError(t, unstructured.SetNestedField(crd.Object, "", "spec", "conversion", "webhook", "clientConfig", "caBundle"))
	})

	found := faults(report)

	require.Len(t, found, 1)
	assert.Contains(t, found[0].Trouble, "has no CA yet")
	assert.Contains(t, found[0].Help, "kubectl -n flotilla-system logs deployment/spread-manager")
}

// OpenKruise has a feature that is not installed: after the way back from a takeover, too.
func TestWhoElseHasAFeatureIsTold(t *testing.T) {
	report := installed(t, "spread", nil)
	assert.Empty(t, report.besideOpenKruise(openkruise.Presence{}))
	manager := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment"}}
	assert.NotEmpty(t, report.besideOpenKruise(openkruise.Presence{Deployments: []*unstructured.Unstructured{manager}}))
	var out bytes.Buffer
	table(&out, []*Report{{Feature: "spread", OpenKruise: "OpenKruise manages its kinds"}})
	assert.Contains(t, out.String(), "not installed   OpenKruise manages its kinds\n")
}

// A feature that was taken over is told with the ways on; OpenKruise that has gone is a finding.
func TestWhatWasTakenOverIsTold(t *testing.T) {
	handover := openkruise.Handover{Feature: "spread", Direction: openkruise.Over, From: openkruise.Default()}
	report := &Report{Feature: "spread", Installed: true, Healthy: true, Version: "v1.0.0", handover: &handover, TakenOver: handover.State()}
	const state = "taken over from OpenKruise; to go back: flotilla takeover spread --undo; to finish: flotilla takeover --finish spread\n"
	var out bytes.Buffer
	table(&out, []*Report{report})
	assert.Contains(t, out.String(), "healthy   "+state)

	out.Reset()
	tell(surroundings{installed: 1, takenOver: "spread: " + report.TakenOver + "\n"})(&out, nil)
	assert.Equal(t, "no problem found\nspread: "+state, out.String())

	there := openkruise.Presence{Configurations: openkruise.Configurations()}
	assert.Empty(t, changingHands(report, there))
	assert.Equal(t, []Finding{{
		About: "spread", Trouble: "it was taken over from OpenKruise. OpenKruise is gone, but the takeover is not finished",
		Help: "Finish the takeover: flotilla takeover --finish spread",
	}}, changingHands(report, openkruise.Presence{}))
}

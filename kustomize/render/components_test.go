package render_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// joint are the overlays of several features.
var joint = []string{"all", "minimal"}

// Their objects are those of the single overlays, so that names are enough for a reviewer.
func TestOverlaysOfSeveralFeatures(t *testing.T) {
	for _, overlay := range joint {
		t.Run(overlay, func(t *testing.T) {
			assertGolden(t, overlay+".txt", names(buildMine(t, "resources: [../kustomize/overlays/"+overlay+"]\n")))
		})
	}
}

func TestAllIsEveryFeature(t *testing.T) {
	manifests := buildMine(t, "resources: [../kustomize/overlays/all]\n")
	for _, feature := range features(t) {
		assert.Contains(t, manifests, "image: flotilla/"+feature+"-manager:")
	}
}

// featuresOf returns the features of an overlay.
func featuresOf(t *testing.T, overlay string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "overlays", overlay, "kustomization.yaml"))
	require.NoError(t, err)
	var all []string
	for _, found := range regexp.MustCompile(`/(\w+)/config/default`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, found[1])
	}
	require.NotEmpty(t, all)
	return all
}

// names returns kind and name of each document, one line each.
func names(manifests string) string {
	var lines strings.Builder
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		kind, name := "", ""
		for line := range strings.SplitSeq(document, "\n") {
			if rest, ok := strings.CutPrefix(line, "kind: "); ok {
				kind = rest
			}
			if rest, ok := strings.CutPrefix(line, "  name: "); ok && name == "" {
				name = rest
			}
		}
		lines.WriteString(kind + " " + name + "\n")
	}
	return lines.String()
}

// team is what component namespaced reads the namespace from; the others do not see it.
const team = `
configMapGenerator:
- name: flotilla-namespaced
  literals: [namespace=team]
  options:
    annotations: {config.kubernetes.io/local-config: "true"}
`

// All components together go with every feature alone and with all of them.
func TestComponentsFitEveryFeature(t *testing.T) {
	components := []string{"clientcertificates", "highavailability", "networkpolicy", "prometheus"}
	for _, overlay := range append(features(t), joint...) {
		t.Run(overlay, func(t *testing.T) {
			kustomization := "resources: [../kustomize/overlays/" + overlay + "]\n" + team + "components:\n"
			for _, component := range components {
				kustomization += "- ../kustomize/components/" + component + "\n"
			}
			for _, feature := range featuresOf(t, overlay) {
				kustomization += "- ../" + feature + "/config/prometheus\n"
			}
			kustomization += "- ../kustomize/components/namespaced\n"

			manifests := buildMine(t, kustomization)

			managers := strings.Count(manifests, "\nkind: Deployment\n")
			assert.Positive(t, managers)
			assert.Equal(t, managers, strings.Count(manifests, "  replicas: 2\n"))
			assert.Equal(t, 2*managers, strings.Count(manifests, "matchLabelKeys:"))
			assert.Equal(t, managers, strings.Count(manifests, "\nkind: PodDisruptionBudget\n"))
			assert.Equal(t, managers, strings.Count(manifests, "port: 8080\n"), "Services show metrics")
			assert.Equal(t, managers, strings.Count(manifests, "        - --webhook-client-ca-file=/etc/flotilla/webhook-callers/ca.crt\n"))
			assert.Equal(t, 2, strings.Count(manifests, "\nkind: NetworkPolicy\n"), "of managers and of node agents")
			assert.Equal(t, managers+1, strings.Count(manifests, "\nkind: ServiceMonitor\n"), "of each manager, and of node agents")
			assert.Equal(t, managers, strings.Count(manifests, "      serverName: "), "Prometheus verifies each manager")
			assert.Equal(t, 1, strings.Count(manifests, "      insecureSkipVerify: true\n"), "and no node agent")
			assert.NotContains(t, manifests, "bearerToken", "Prometheus shows no operator a token with its own permissions")
			assert.Equal(t, managers, strings.Count(manifests, "          value: team\n"))
			roles := strings.Count(build(t, "kustomize/overlays/"+overlay), "    apps.kruise.io/rights: namespaced\n")
			assert.GreaterOrEqual(t, roles, 2*managers, "a ClusterRole and its binding for each")
			assert.Equal(t, roles, strings.Count(manifests, "  namespace: team\n"), "each of them in the namespace")
		})
	}
}

// What the components add is written down with one feature.
func TestComponents(t *testing.T) {
	for _, component := range []string{
		"../kustomize/components/clientcertificates", "../kustomize/components/highavailability", "../kustomize/components/networkpolicy",
		"../kustomize/components/prometheus", "../kustomize/components/namespaced", "../cloneset/config/certmanager",
		"../cloneset/config/prometheus",
	} {
		name := strings.NewReplacer("../kustomize/components/", "", "../", "", "/config/", "-").Replace(component)
		t.Run(name, func(t *testing.T) {
			without := buildMine(t, "resources: [../cloneset/config/default]\n")

			with := buildMine(t, "resources: [../cloneset/config/default]\n"+team+"components: ["+component+"]\n")

			assertGolden(t, "components/"+name+".yaml", unversioned(t, "cloneset", added(without, with)))
		})
	}
}

// added returns the documents that are not in the first manifests.
func added(without, with string) string {
	present := map[string]bool{}
	for document := range strings.SplitSeq(strings.TrimSpace(without), "\n---\n") {
		present[document] = true
	}
	var kept []string
	for document := range strings.SplitSeq(strings.TrimSpace(with), "\n---\n") {
		if !present[document] {
			kept = append(kept, document)
		}
	}
	return strings.Join(kept, "\n---\n") + "\n"
}

// The rules of the component are those of the page of alerts.
func TestTheComponentRaisesTheAlertsOfTheDocs(t *testing.T) {
	alerts, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "alerts.yaml"))
	require.NoError(t, err)
	file := filepath.Join("..", "components", "prometheus", "rules.yaml")
	present, err := os.ReadFile(file)
	require.NoError(t, err)
	head, _, found := strings.Cut(string(present), "\nspec:\n")
	require.True(t, found)
	var want strings.Builder
	want.WriteString(head + "\nspec:\n")
	for line := range strings.Lines(string(alerts)) {
		if strings.TrimSpace(line) != "" {
			want.WriteString("  ")
		}
		want.WriteString(line)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(file, []byte(want.String()), 0o644))
		return
	}
	assert.Equal(t, want.String(), string(present))
}

package openkruise

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhoKeepsOpenKruise(t *testing.T) {
	cases := []struct{ name, metadata, want string }{
		{"nobody", "{labels: {app.kubernetes.io/instance: kruise}}", ""},
		{
			"Helm", "{annotations: {meta.helm.sh/release-name: kruise, meta.helm.sh/release-namespace: default}}",
			"Helm release default/kruise manages OpenKruise: its next upgrade reverts the takeover. Run the command again after it",
		},
		{
			"Argo CD by its annotation", "{annotations: {argocd.argoproj.io/tracking-id: 'kruise:apps/Deployment:kruise-system/m', meta.helm.sh/release-name: kruise}}",
			"Application kruise of Argo CD manages OpenKruise: a sync reverts the takeover, at once with self-heal. " +
				"Turn automated sync off first, and do not sync OpenKruise until the takeover is finished",
		},
		{
			"Argo CD by its label", "{labels: {app.kubernetes.io/instance: kruise}, managedFields: [{manager: argocd-controller}]}",
			"Application kruise of Argo CD manages OpenKruise: a sync reverts the takeover, at once with self-heal. " +
				"Turn automated sync off first, and do not sync OpenKruise until the takeover is finished",
		},
		{
			"Flux", "{labels: {kustomize.toolkit.fluxcd.io/name: infra, kustomize.toolkit.fluxcd.io/namespace: flux-system}}",
			"Kustomization flux-system/infra of Flux manages OpenKruise: its next reconciliation reverts the takeover. Suspend it first: " +
				"flux suspend kustomization -n flux-system infra",
		},
		{
			"Flux with Helm", "{labels: {helm.toolkit.fluxcd.io/name: kruise, helm.toolkit.fluxcd.io/namespace: a}, annotations: {meta.helm.sh/release-name: kruise}}",
			"HelmRelease a/kruise of Flux manages OpenKruise: its next reconciliation reverts the takeover. Suspend it first: flux suspend helmrelease -n a kruise",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			kept := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: "+c.metadata+"}")
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			assert.Equal(t, want, Keepers(kept, kept))
		})
	}
}

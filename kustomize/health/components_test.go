package health

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// A component that was left out is a note, and its roles are no faults. A role that was lost is one.
func TestAComponentThatIsLeftOut(t *testing.T) {
	features, err := catalog.Select("jobs")
	require.NoError(t, err)
	const role = "ClusterRole jobs-manager-pullsecrets"
	note := []Finding{{
		About: "jobs", Trouble: "component pullsecrets is left out, and with it its permissions",
		Help: "Objects that need them wait. To add the component: flotilla install jobs --component pullsecrets", Note: true,
	}}
	missing := []string{role + " is missing", "ClusterRoleBinding jobs-manager-pullsecrets is missing"}
	cases := []struct {
		name, by string
		without  []string
		gone     []string
		want     []Finding
		faults   []string
	}{
		{"everything", "flotilla", nil, nil, nil, nil},
		{"everything, by kubectl", "kustomize", nil, nil, nil, nil},
		{"left out", "flotilla", []string{"pullsecrets"}, []string{"ClusterRole", "ClusterRoleBinding"}, note, nil},
		{"left out, by kubectl", "kustomize", nil, []string{"ClusterRole", "ClusterRoleBinding"}, note, nil},
		{"lost", "flotilla", nil, []string{"ClusterRole", "ClusterRoleBinding"}, nil, missing},
		{"the role is lost, by kubectl", "kustomize", nil, []string{"ClusterRole"}, nil, missing[:1]},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			report := installed(t, "jobs", func(live map[string]*unstructured.Unstructured) {
				for _, kind := range c.gone {
					delete(live, kind+strings.TrimPrefix(role, "ClusterRole"))
				}
				manager := live["Deployment flotilla-system/jobs-manager"]
				labels := manager.GetLabels()
				labels["app.kubernetes.io/managed-by"] = c.by
				manager.SetLabels(labels)
			})
			report.Faults = nil

			report.leaveOut(features[0], c.without)
			report.judge()

			assert.Equal(t, c.want, leftOut(report))
			assert.Equal(t, c.faults, report.Faults)
			assert.Equal(t, c.faults == nil, report.Healthy)
		})
	}
}

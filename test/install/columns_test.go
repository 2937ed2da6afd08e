package install

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// defaultColumns are what kubectl get shows without -o wide, which scripts read by position.
func defaultColumns() map[string]string {
	return map[string]string{
		"AdvancedCronJob":          "Schedule Type LastScheduleTime AGE",
		"BroadcastJob":             "Desired Active Succeeded Failed AGE",
		"CloneSet":                 "DESIRED UPDATED UPDATED_READY UPDATED_AVAILABLE READY TOTAL AGE",
		"ContainerRecreateRequest": "PHASE POD NODE AGE",
		"DaemonSet":                "DESIRED CURRENT READY UP-TO-DATE AVAILABLE AGE",
		"ImageListPullJob":         "TOTAL SUCCEEDED COMPLETED AGE",
		"ImagePullJob":             "TOTAL ACTIVE SUCCEED FAILED AGE MESSAGE",
		"NodeImage":                "DESIRED PULLING SUCCEED FAILED AGE",
		"PodUnavailableBudget":     "Allowed Current Desired Total",
		"StatefulSet":              "DESIRED CURRENT UPDATED READY AGE",
		"WorkloadSpread":           "WorkloadName WorkloadKind Adaptive Subsets Age",
	}
}

// wideColumns are the kinds with columns that say why an object does not proceed, and what these columns show of held.
func wideColumns() map[string]map[string]string {
	set := map[string]string{"REVISION": "web-2", "REASON": "NextBatch", "MESSAGE": "1 of 2 pods are updated"}
	return map[string]map[string]string{
		"CloneSet": set, "StatefulSet": set, "DaemonSet": set,
		"BroadcastJob":             {"Phase": "running", "Message": "it waits for a node"},
		"ContainerRecreateRequest": {"MESSAGE": "it waits for a node"},
		"AdvancedCronJob":          {"Reason": "InvalidSchedule", "Message": "no cron line"},
		"PodUnavailableBudget":     {"Reason": "NoneLeft", "Message": "pod web-1 is unavailable"},
		"WorkloadSpread":           {"Reason": "NoSubset", "Message": "pod web-1 has no subset"},
	}
}

// held is an object with the fields that say why it does not proceed, each condition after others.
const held = `
status:
  updateRevision: web-2
  daemonSetHash: web-2
  phase: running
  message: it waits for a node
  conditions:
  - {type: FailedScale, status: "False", reason: Other, message: another}
  - {type: Ready, status: "False", reason: NextBatch, message: 1 of 2 pods are updated}
  - {type: Scheduling, status: "False", reason: InvalidSchedule, message: no cron line}
  - {type: Exhausted, status: "True", reason: NoneLeft, message: pod web-1 is unavailable}
  - {type: AllPlaced, status: "False", reason: NoSubset, message: pod web-1 has no subset}
`

func TestColumnsShowWhyAnObjectDoesNotProceed(t *testing.T) {
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(held), &object))
	files, err := filepath.Glob(filepath.Join("..", "..", "*", "config", "crd", "*s.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(defaultColumns()))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(text, &crd))
		kind := crd.Spec.Names.Kind
		for _, version := range crd.Spec.Versions {
			t.Run(kind+" "+version.Name, func(t *testing.T) {
				var shown []string
				wide := map[string]string{}
				for _, column := range version.AdditionalPrinterColumns {
					if column.Priority == 0 {
						shown = append(shown, column.Name)
						continue
					}
					path, value := jsonpath.New(column.Name).AllowMissingKeys(true), &bytes.Buffer{}
					require.NoError(t, path.Parse("{"+column.JSONPath+"}"))
					require.NoError(t, path.Execute(value, object))
					wide[column.Name] = value.String()
				}
				assert.Equal(t, defaultColumns()[kind], strings.Join(shown, " "))
				for name, want := range wideColumns()[kind] {
					assert.Equal(t, want, wide[name], name)
				}
			})
		}
	}
}

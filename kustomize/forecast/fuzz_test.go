package forecast_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// Any file may be given as a scene, such as one that a broken script has written.
func FuzzFiles(f *testing.F) {
	var kinds []workload.Named
	for name, set := range map[string]string{"CloneSet": "web", "StatefulSet": "db", "DaemonSet": "agent"} {
		kind, err := workload.KindNamed(name)
		require.NoError(f, err)
		kinds = append(kinds, workload.Named{Kind: kind, Name: set})
	}
	const others = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: web-a, namespace: default, ownerReferences: [{uid: w, controller: true}]}, spec: {containers: [{name: main}], nodeName: n}}
- {apiVersion: v1, kind: Pod, metadata: {name: other, namespace: default}, spec: {containers: [{resources: {requests: {cpu: 1}}}]}}
- {apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: "2", pods: "10"}}}
- {apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: r, ownerReferences: [{uid: w, controller: true}]}, data: {spec: {}}, revision: 1}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: default}, spec: {volumeName: v}}
- {apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 1Gi}}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: default}, spec: {hard: {pods: "3"}}}
- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default}, spec: {maxUnavailable: 50%}}
`
	f.Add([]byte(scenes.Web + "---" + others))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[null,{"kind":"Pod"},[]]}`))
	f.Add([]byte("apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet\nmetadata: {name: db, ownerReferences: 1}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := forecast.Objects("-", bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, named := range kinds {
			scene, err := forecast.Files(objects, named, scenes.Now())
			assert.Equal(t, err == nil, scene != nil)
			if scene != nil {
				assert.Equal(t, named.Name, scene.Set.GetName())
			}
		}
	})
}

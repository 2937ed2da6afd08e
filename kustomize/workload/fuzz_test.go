package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func FuzzParse(f *testing.F) {
	f.Add("cloneset/web", "")
	f.Add("sts.v1beta1.apps.kruise.io", "web")
	f.Add("/", "/")
	f.Fuzz(func(t *testing.T, first, second string) {
		args := []string{first, second}
		if second == "" {
			args = args[:1]
		}
		if named, err := Parse(args); err == nil {
			again, err := Parse([]string{named.String()})
			assert.NoError(t, err)
			assert.Equal(t, named, again)
		}
	})
}

func FuzzReadRevision(f *testing.F) {
	f.Add([]byte(`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{"containers":[{"resources":{}}],"initContainers":[null]}}}}`))
	f.Add([]byte(`{"spec":{"template":{"spec":{"containers":{}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		revision, err := readRevision(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}})
		assert.Equal(t, err == nil, revision != nil)
	})
}

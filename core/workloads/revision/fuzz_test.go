package revision

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A ControllerRevision can be of another version of the operator, of OpenKruise, or of any client.
func FuzzTemplate(f *testing.F) {
	f.Add([]byte(`{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"main","image":"app:1"}]}}}}`))
	f.Add([]byte(`{"spec":{"template":null}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		template, err := Template(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}})
		assert.Equal(t, err == nil, template != nil)
	})
}

package pass

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A manager with rights in one namespace was refused when it compared its caches with the server, and never began.
func TestKindsAreComparedWithinTheNamespace(t *testing.T) {
	pods, nodes := &corev1.Pod{}, &corev1.Node{}
	all := map[client.Object]cache.ByObject{pods: {}, nodes: {Field: fields.Everything()}}

	restricted := within("team", all)
	assert.Equal(t, "metadata.namespace=team", restricted[pods].Field.String())
	assert.True(t, restricted[nodes].Field.Empty())
	assert.Equal(t, all, within("", all))
}

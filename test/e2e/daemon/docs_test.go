package daemon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

func TestExamplesOfThePages(t *testing.T) {
	t.Parallel()
	publish(t, "nginx:1.28")
	t.Cleanup(func() { // is not namespaced
		assert.NoError(t, world.Client.Delete(contextOf(t), &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "example"}}))
	})
	for page, kind := range map[string]string{
		"containerrecreaterequest": "containerrecreaterequests", "nodeimage": "nodeimages", "container-launch-priority": "pods",
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			world.Examples(t, world.Namespace(t), "../../../docs/features/"+page+".md", kind)
		})
	}
}

package daemon

import (
	"testing"
)

// The examples stand beside each other as on the pages.
func TestExamplesOfThePages(t *testing.T) {
	t.Parallel()
	for page, kind := range map[string]string{
		"containerrecreaterequest": "containerrecreaterequests", "nodeimage": "nodeimages", "container-launch-priority": "pods",
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			world.Examples(t, world.Namespace(t), "../../../docs/features/"+page+".md", kind)
		})
	}
}

package nodeimage_test

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/core/testing/docs"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// Users look up in the feature's page, and in that of conditions and events, what NodeImages and events say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page := docs.Feature(t, "nodeimage", "reference/events")
	page.Names(plan.Reasons, imagepull.Reasons, []string{
		string(v1beta1.ImageWaiting), string(v1beta1.ImagePulling), string(v1beta1.ImageSucceeded), string(v1beta1.ImageFailed),
		v1beta1.SecretModesAnnotation, v1beta1.DefaultConfigNamespace,
	})
	page.Quotes(plan.Messages, []string{v1beta1.FakeNodeImageLabel, conversion.AcceptLossAnnotation})
}

package nodeimage_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/conversion"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// Users look up in the feature's page what NodeImages and events say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page, err := os.ReadFile("../../../docs/features/nodeimage.md")
	require.NoError(t, err)
	for _, words := range []string{
		plan.MessageSilent, plan.MessageDeadline, plan.EventFailed,
		string(v1beta1.ImageWaiting), string(v1beta1.ImagePulling), string(v1beta1.ImageSucceeded), string(v1beta1.ImageFailed),
		v1beta1.SecretModesAnnotation, v1beta1.FakeNodeImageLabel, v1beta1.DefaultConfigNamespace, conversion.AcceptLossAnnotation,
	} {
		assert.Contains(t, string(page), words)
	}
}

package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Users compare reasons with the words of the API, and core writes them.
func TestReasonsAreThoseOfTheAPI(t *testing.T) {
	assert.Equal(t, podupdate.WaitNotInPlace, v1alpha1.ReasonNotInPlace)
	assert.Equal(t, podupdate.WaitNodeAgentMissing, v1alpha1.ReasonNodeAgentMissing)
	assert.Equal(t, podupdate.WaitNotInPlace, v1beta1.ReasonNotInPlace)
	assert.Equal(t, podupdate.WaitNodeAgentMissing, v1beta1.ReasonNodeAgentMissing)
}

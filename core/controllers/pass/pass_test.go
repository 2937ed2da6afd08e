package pass

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// A set whose spec cannot be followed still has to look after pods, for instance at the end of a grace period.
func TestUnreadableSpecKeepsTheNextLook(t *testing.T) {
	wrong := errors.New("not a number")
	result, err := (&Pass{Err: wrong, Plan: action.Plan{RequeueAfter: time.Second}}).end(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, time.Second, result.RequeueAfter)

	_, err = (&Pass{Err: wrong}).end(t.Context(), nil)
	require.ErrorIs(t, err, reconcile.TerminalError(nil))
	_, err = (&Pass{Plan: action.Plan{RequeueAfter: time.Second}}).end(t.Context(), wrong)
	assert.ErrorIs(t, err, wrong)
}

package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/progress"
)

func TestOnlyACompleteRolloutIsAYes(t *testing.T) {
	require.NoError(t, answer(progress.Report{Phase: progress.Complete}))
	for _, phase := range []progress.Phase{progress.Progressing, progress.Paused, progress.Failed} {
		assert.Equal(t, cli.NotSo, cli.CodeOf(answer(progress.Report{Kind: "CloneSet", Name: "web", Phase: phase})), phase)
	}
}

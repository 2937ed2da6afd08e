package containerrestart

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
)

func versioned(version string) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{}
	r.UID, r.ResourceVersion = "r", version
	return r
}

func TestRefusedWritesPauseLongerAndLonger(t *testing.T) {
	m := &memory{pods: map[ctrl.Request]*pod{}}
	now := gen.Epoch()
	begin, minute := 0, 0
	for now.Before(gen.Epoch().Add(10 * time.Minute)) {
		if now.Before(gen.Epoch().Add(10 * time.Second)) {
			begin++
		}
		if !now.Before(gen.Epoch().Add(9 * time.Minute)) {
			minute++
		}
		pause := m.refuse(node.Write{Request: versioned("1")}, false, now)
		assert.Equal(t, pause, m.pauseOf(versioned("2"), now), "no change of the request cuts it short")
		assert.LessOrEqual(t, pause, 30*time.Second, "what ends is seen soon")
		now = now.Add(pause)
		assert.Zero(t, m.pauseOf(versioned("1"), now))
	}
	assert.LessOrEqual(t, begin, 10)
	assert.LessOrEqual(t, minute, 2)
	m.wrote(versioned("3"))
	assert.Equal(t, time.Second, m.refuse(node.Write{Request: versioned("3")}, false, now), "a success ends that")
}

func TestAConflictWaitsForAnotherVersion(t *testing.T) {
	m := &memory{pods: map[ctrl.Request]*pod{}}
	now := gen.Epoch()
	for range 2 {
		pause := m.refuse(node.Write{Request: versioned("1")}, true, now)
		assert.Equal(t, pause, m.pauseOf(versioned("1"), now))
		assert.Zero(t, m.pauseOf(versioned("2"), now))
	}
	pause := m.refuse(node.Write{Request: versioned("1")}, true, now)
	assert.Equal(t, pause, m.pauseOf(versioned("2"), now), "a server that always says so is believed in the end")
}

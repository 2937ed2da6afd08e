package cover

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWhoOwnsPodsIsRememberedForAMoment(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	o := NewOwning(now)
	is := func() [2]bool { pods, known := o.get("fleet"); return [2]bool{pods, known} }
	assert.Equal(t, [2]bool{false, false}, is())
	begun := o.begin()
	now.SetTime(begun.Add(owningTTL / 2))
	o.set("fleet", o.begin(), true)
	o.set("fleet", begun, false)
	assert.Equal(t, [2]bool{true, true}, is(), "who began to read earlier knows less")
	now.SetTime(now.Now().Add(owningTTL))
	assert.Equal(t, [2]bool{false, false}, is())

	var none *Owning
	none.set("fleet", none.begin(), true)
	pods, known := none.get("fleet")
	assert.False(t, pods || known)
}

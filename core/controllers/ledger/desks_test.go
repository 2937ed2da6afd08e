package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// Objects come and go for hours; those that are gone take no memory.
func TestObjectsThatNobodyAsksAboutAreForgotten(t *testing.T) {
	var all desks[int]
	now := time.Unix(0, 0)
	stays := all.of("stays", now)
	for i := range 100 {
		now = now.Add(time.Minute)
		assert.Same(t, stays, all.of("stays", now))
		all.of(types.UID(fmt.Sprint(i)), now)
		assert.LessOrEqual(t, len(all.present)+len(all.former), 2*(1+int(turn/time.Minute)))
	}
	assert.Same(t, stays, all.of("stays", now.Add(turn)))
	assert.NotSame(t, stays, all.of("stays", now.Add(3*turn)), "nobody asked for two turns")
}

func TestManyObjectsEndATurn(t *testing.T) {
	var all desks[int]
	now := time.Unix(0, 0)
	first := all.of("0", now)
	for i := range mostDesks {
		assert.Same(t, first, all.of("0", now))
		all.of(types.UID(fmt.Sprint(i)), now)
	}
	for i := range 3 * mostDesks {
		all.of(types.UID(fmt.Sprint("other-", i)), now)
		assert.LessOrEqual(t, len(all.present)+len(all.former), 2*mostDesks)
	}
	assert.NotSame(t, first, all.of("0", now))
}

package memory_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"
)

func key(uid types.UID) memory.Key {
	return memory.Key{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}, UID: uid}
}

func TestAnObjectThatIsMadeAnewInheritsNothing(t *testing.T) {
	var ended []memory.Key
	m := memory.Objects[int]{Ended: func(of memory.Key, _ int) { ended = append(ended, of) }}
	m.Set(key("old"), 1)
	value, ok := m.Get(key("old"))
	assert.True(t, ok)
	assert.Equal(t, 1, value)

	_, ok = m.Get(key("new"))
	assert.False(t, ok)
	m.Change(key("new"), func(before int) (int, bool) { return before + 5, true })
	value, _ = m.Get(key("new"))
	assert.Equal(t, 5, value)
	_, ok = m.Get(key("old"))
	assert.False(t, ok)
	assert.Equal(t, []memory.Key{key("old")}, ended)
}

func TestWhatIsForgottenOrNotKeptIsGone(t *testing.T) {
	ended := 0
	m := memory.Objects[int]{Ended: func(memory.Key, int) { ended++ }}
	m.Change(key("a"), func(int) (int, bool) { return 1, false })
	_, ok := m.Get(key("a"))
	assert.False(t, ok)
	m.Set(key("a"), 1)
	m.Change(key("a"), func(before int) (int, bool) { return before, false })
	_, ok = m.Get(key("a"))
	assert.False(t, ok)
	assert.Zero(t, ended, "the caller has dropped it itself")
	m.Set(key("a"), 1)
	m.Forget(key("a").NamespacedName)
	m.Forget(key("a").NamespacedName)
	_, ok = m.Get(key("a"))
	assert.False(t, ok)
	assert.Equal(t, 1, ended)
}

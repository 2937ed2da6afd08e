package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTaskIsReadWhateverItsName(t *testing.T) {
	for name, c := range map[string]struct {
		stat, statm string
		want        task
		ok          bool
	}{
		"plain name":    {"12 (etcd) S 7 12 12 0", "100 25 3 0 0 0 0", task{7, "etcd", 25 * 4096}, true},
		"name with ) (": {"12 (a) b (c) S 7 12 12 0", "100 1 3", task{7, "a) b (c", 4096}, true},
		"cut off":       {"12 (etcd", "100 25", task{}, false},
		"no memory":     {"12 (etcd) S 7", "", task{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseTask(c.stat, c.statm, 4096)
			assert.Equal(t, c.ok, ok)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestTaskBelongsToTheNearestMachine(t *testing.T) {
	tasks := map[int]task{1: {}, 5: {parent: 1}, 6: {parent: 5}, 7: {parent: 6}, 9: {parent: 1}}
	roots := map[int]string{5: "supervisor", 6: "n0"}
	assert.Equal(t, "supervisor", rootOf(5, tasks, roots))
	assert.Equal(t, "n0", rootOf(7, tasks, roots))
	assert.Empty(t, rootOf(9, tasks, roots), "somebody else's")
}

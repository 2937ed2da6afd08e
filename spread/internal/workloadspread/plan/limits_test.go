package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		subsets  string
		replicas *int32
		want     []int32
	}{
		{"a=2 b=0 c", nil, []int32{2, 0, subsets.Unlimited}},
		{"a=34% b=33% c=33%", new(int32(10)), []int32{4, 4, 4}},
		{"a=20% b=30% c=50%", new(int32(10)), []int32{2, 3, 5}},
		{"a=80% b", new(int32(5)), []int32{4, subsets.Unlimited}},
		{"a=100%", new(int32(0)), []int32{0}},
		// Replicas are unknown, or the value is one that admission refuses.
		{"a=50% b", nil, []int32{0, subsets.Unlimited}},
		{"a=x b", new(int32(5)), []int32{0, subsets.Unlimited}},
		{"a=0.2% b=-1", new(int32(5)), []int32{0, 0}},
	} {
		assert.Equal(t, c.want, subsets.Limits(given(c.subsets), c.replicas), c.subsets)
	}
}

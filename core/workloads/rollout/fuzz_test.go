package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func FuzzParse(f *testing.F) {
	for _, text := range []string{"20%", "0%", "-5%", "1e9%", "+.5%", "100.000000000000000000000000000001%", "%", "3", "9999999999999999999999999999999%", "1/3%"} {
		f.Add(text, int32(7))
	}
	f.Fuzz(func(t *testing.T, text string, total int32) {
		a, err := Parse(intstr.FromString(text))
		if err != nil {
			return
		}
		up, down := a.ScaledTo(total, RoundUp), a.ScaledTo(total, RoundDown)
		assert.LessOrEqual(t, down, up)
		assert.LessOrEqual(t, int64(up)-int64(down), int64(1))
		if total >= 0 && !a.IsNegative() {
			assert.GreaterOrEqual(t, down, int32(0))
		}
		if a.isHundredPercent() {
			assert.Equal(t, total, down)
		}
	})
}

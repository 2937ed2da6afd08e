package endurance

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestAnswersToDisruptionsAreCounted(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, tt := range map[string]struct {
		answer        error
		done, refused int
		fails         bool
	}{
		"accepted":                    {nil, 1, 0, false},
		"a pod that is gone already":  {apierrors.NewNotFound(pods, "web"), 1, 0, false},
		"an eviction that is refused": {apierrors.NewTooManyRequests("a budget", 9), 0, 1, false},
		"a deletion that is refused":  {apierrors.NewForbidden(pods, "web", errors.New("a budget")), 0, 1, false},
		"a server that fails":         {apierrors.NewInternalError(errors.New("broken")), 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := place{work: &Work{}}
			err := p.disrupt(tt.answer, &p.work.Evictions)
			assert.Equal(t, tt.fails, err != nil)
			assert.Equal(t, []int{tt.done, tt.refused}, []int{p.work.Evictions, p.work.Refused})
		})
	}
}

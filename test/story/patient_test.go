package story

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestAWriteThatNoWebhookJudgedIsRepeated(t *testing.T) {
	unjudged := apierrors.NewInternalError(errors.New(`failed calling webhook "v.kb.io": context deadline exceeded`))
	starting := errors.New(`admission webhook "v.kb.io" denied the request: list the budgets: the cache of Budgets has yet to fill`)
	refused := apierrors.NewBadRequest("no")
	for name, tt := range map[string]struct {
		answers []error
		away    bool
		want    error
	}{
		"accepted":            {answers: []error{nil}},
		"not judged at first": {answers: []error{unjudged, unjudged, nil}},
		"not known at first":  {answers: []error{starting, nil}},
		"refused":             {answers: []error{refused}, want: refused},
		"not judged while the story has stopped the operator": {answers: []error{unjudged}, away: true, want: unjudged},
	} {
		t.Run(name, func(t *testing.T) {
			away := &atomic.Bool{}
			away.Store(tt.away)
			writes := 0
			err := again(t.Context(), away, func() error {
				writes++
				return tt.answers[writes-1]
			})
			assert.Equal(t, tt.want, err)
			assert.Equal(t, len(tt.answers), writes)
		})
	}
}

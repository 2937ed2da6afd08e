package frame

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// A caller of the webhook cannot make the operator ask the API server as often as they like.
func TestCallersOfWebhooksAskNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &testenv.CreateCounter{}
		judge := TemplateValidator(&manager.Environment{Clock: clock.RealClock{}}, server)
		var refused atomic.Int64
		var group sync.WaitGroup
		for i := range 1000 {
			group.Go(func() {
				pod := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"number": strconv.Itoa(i)}}}
				_, err := judge.ValidateChange(t.Context(), "any", podtemplate.Template{Pod: pod}, nil, field.NewPath("spec"))
				if apierrors.IsServiceUnavailable(err) {
					refused.Add(1)
				}
			})
		}
		group.Wait()
		assert.LessOrEqual(t, server.Created(), int64(300))
		assert.GreaterOrEqual(t, server.Created(), int64(100))
		assert.EqualValues(t, 1000, server.Created()+refused.Load())
	})
}

package setup

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// questionTimeout bounds what a webhook asks the cluster: admission has to answer within the API server's limit.
const questionTimeout = 2 * time.Second

// limited is a reader that sends no more requests than the limiter allows, because anybody who can reach a webhook can
// cause them. A caller that would have to wait too long gets an error to try again later.
type limited struct {
	client.Reader
	questions *rate.Limiter
}

// Get implements client.Reader.
func (l limited) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	if l.questions.Wait(ctx) != nil {
		return apierrors.NewTooManyRequests("too many requests are judged at the moment, try again", 1)
	}
	return l.Reader.Get(ctx, key, object, options...)
}

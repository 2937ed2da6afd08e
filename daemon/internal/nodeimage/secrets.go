package nodeimage

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretAge is how long an answer about a secret is valid. NodeImages share their secrets, so that each secret is
// requested once in that time and not once for each node.
const secretAge = time.Minute

// secrets asks the server whether secrets exist, and never for their data.
type secrets struct {
	live  client.Reader
	clock clock.PassiveClock
	known answers[types.NamespacedName]
}

// look records whether the secret exists. If the server does not answer, nothing is recorded.
func (s *secrets) look(ctx context.Context, name types.NamespacedName, found map[types.NamespacedName]bool) {
	if _, known := found[name]; known {
		return
	}
	there, known := s.known.recall(name, s.clock.Now())
	if !known {
		var err error
		if there, err = s.ask(ctx, name); err != nil {
			return
		}
		s.known.note(name, there, s.clock.Now())
	}
	found[name] = there
}

func (s *secrets) ask(ctx context.Context, name types.NamespacedName) (bool, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := s.live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

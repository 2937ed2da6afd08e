package admission

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// validateStored returns an error for a stored pod that no API server sends: without a UID or a version, with a name that
// no pod can have, or with another name or namespace than the request.
func validateStored(req admission.Request[*corev1.Pod]) error {
	pod := req.Old
	switch {
	case pod.UID == "":
		return apierrors.NewBadRequest("the stored pod has no UID")
	case len(validation.IsDNS1123Subdomain(pod.Name)) > 0:
		return apierrors.NewBadRequest("the stored pod has an invalid name")
	case !isVersion(pod.ResourceVersion):
		return apierrors.NewBadRequest("the stored pod has no resourceVersion")
	case pod.Namespace != req.Namespace, req.Name != "" && pod.Name != req.Name: // a deletion of many pods has an empty name
		return apierrors.NewBadRequest("the stored pod differs from the pod in the request")
	}
	return nil
}

// isVersion reports whether an API server writes such a resourceVersion: a decimal number of 64 bits.
func isVersion(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

// isThere reports whether the stored pod of a request is there and serves, as the cache has it or, if that does not show
// it, the server. Any client that reaches the port can send a request, so that nothing is recorded for a pod that only the
// request shows. If the server has no such pod, or another one, the API server carries the request out on no pod before it
// has asked again.
func (w Pods) isThere(ctx context.Context, pod *corev1.Pod) (bool, error) {
	name := client.ObjectKeyFromObject(pod)
	cached, err := fastclient.Get[corev1.Pod](ctx, w.Cover.Cache, name)
	if err == nil && serves(cached, pod) {
		return true, nil
	}
	live := &corev1.Pod{}
	err = w.Live.Get(ctx, name, live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read pod %s: %w", name, err)
	}
	return serves(live, pod), nil
}

func serves(known, pod *corev1.Pod) bool {
	return known.UID == pod.UID && disruption.IsProtected(known)
}

package cluster

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ask asks webhooks of the world, nil for none.
func (w *World) ask(webhooks func(*World, Event) error, e Event) error {
	if webhooks == nil {
		return nil
	}
	e.Kind = KindOf(e.Object)
	e.Time = w.now
	e.DryRun = w.inDryRun
	err := webhooks(w, e)
	var answer apierrors.APIStatus
	switch {
	case errors.As(err, &answer):
		return err
	case err != nil:
		return apierrors.NewForbidden(ResourceOf(e.Object), e.Object.GetName(), err)
	}
	return nil
}

// Denied returns the answer of a server whose webhook has ended with an error, nil for nil.
func Denied(webhook string, err error) error {
	if err == nil {
		return nil
	}
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Message: err.Error(),
	}}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		denied.ErrStatus = status.Status()
	}
	denied.ErrStatus.Message = fmt.Sprintf("admission webhook %q denied the request: %s", webhook, denied.ErrStatus.Message)
	return denied
}

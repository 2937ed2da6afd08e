package admission

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/contract"
)

// RefuseDeletion returns an error for a workload with a label that protects it from deletion, with the text that users
// match on. It is nil for one that may be deleted, or is being deleted already.
func RefuseDeletion(resource schema.GroupResource, workload metav1.Object, replicas int32) error {
	protection := workload.GetLabels()[contract.DeleteProtectionLabel]
	reason := fmt.Sprintf("forbidden by ResourcesProtectionDeletion for %s=%s", contract.DeleteProtectionLabel, protection)
	switch {
	case workload.GetDeletionTimestamp() != nil:
		return nil
	case protection == contract.DeleteProtectionAlways:
	case protection == contract.DeleteProtectionCascading && replicas > 0:
		reason += fmt.Sprintf(" and replicas %d>0", replicas)
	default:
		return nil
	}
	return apierrors.NewForbidden(resource, workload.GetName(), errors.New(reason))
}

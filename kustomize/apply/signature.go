package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// signatures returns the labels by which a tool names itself as the manager of an object, and its version.
func signatures() []string {
	return []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/version"}
}

// signedByOther reports whether an object cannot be applied only because another tool has signed it. This is no reason to
// refuse: a user who installs over objects that kubectl has applied wants to sign them.
func signedByOther(err error) bool {
	var refused apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &refused) || refused.Status().Details == nil {
		return false
	}
	causes := refused.Status().Details.Causes
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(cause metav1.StatusCause) bool {
		return cause.Type != metav1.CauseTypeFieldManagerConflict || !slices.ContainsFunc(signatures(), func(label string) bool {
			return cause.Field == ".metadata.labels."+label
		})
	})
}

// sign writes the signature labels of the object, even if another field manager has set them. It writes no other field.
func sign(ctx context.Context, resource dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	labels := map[string]string{}
	for _, label := range signatures() {
		if value, ok := object.GetLabels()[label]; ok {
			labels[label] = value
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return fmt.Errorf("write labels as JSON: %w", err)
	}
	_, err = resource.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	return err
}

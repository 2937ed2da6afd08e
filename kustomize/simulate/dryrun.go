package simulate

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// dryRun has the API server default and judge an edit, which it does not store. Without the permission to edit, the edit is
// played as it is, and the scene has a line about it.
func dryRun(ctx context.Context, client *workload.Client, scene *forecast.Scene, edited *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before, err := json.Marshal(scene.Set.Object)
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", edited.GetName(), err)
	}
	after, err := json.Marshal(edited.Object)
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", edited.GetName(), err)
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", edited.GetName(), err)
	}
	defaulted, err := client.Dynamic.Resource(scene.Kind.In(forecast.Version)).Namespace(scene.Set.GetNamespace()).
		Patch(ctx, edited.GetName(), types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsForbidden(err) {
		scene.Unread = append(scene.Unread, fmt.Sprintf("the edit could not be validated by a dry run: %s", err))
		return edited, nil
	}
	if err != nil {
		return nil, fmt.Errorf("edit %s/%s as a dry run: %w", scene.Kind.Short(), edited.GetName(), err)
	}
	return defaulted, nil
}

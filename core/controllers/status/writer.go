package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// timeout bounds one write, for the reason given in package execute.
const timeout = 7 * time.Second

// Recorder records the write. A freshness.Tracker implements it.
type Recorder interface {
	Written(workload types.NamespacedName, o client.Object)
}

// Writer writes statuses.
type Writer struct {
	// Client writes. Its user agent names the controller.
	Client client.Client
	// Recorder records every write.
	Recorder Recorder
}

// Patch writes the difference between the statuses of before, the object as it was read, and after, a copy with the
// wanted status, and reports whether it wrote. If they are equal, nothing is sent.
//
// A merge patch replaces lists, so it names the version that was read: if another writer has changed a condition since,
// the patch is refused, Patch returns false without an error, and the event of that change wakes the workload again. An
// object that is gone is no error either.
func (w Writer) Patch(ctx context.Context, before, after client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	body, err := difference(before, after)
	if err != nil || body == nil {
		return false, err
	}
	gvk, err := apiutil.GVKForObject(before, w.Client.Scheme())
	if err != nil {
		return false, fmt.Errorf("find the kind of %T: %w", before, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	made, err := w.Client.Scheme().New(gvk)
	target, ok := made.(client.Object)
	if err != nil || !ok {
		return false, fmt.Errorf("make a %s for the response: %w", gvk.Kind, err)
	}
	target.SetNamespace(before.GetNamespace())
	target.SetName(before.GetName())
	err = w.Client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, body))
	if err != nil {
		return false, fmt.Errorf("patch the status of %s %s: %w", gvk.Kind, before.GetName(), err)
	}
	w.Recorder.Written(client.ObjectKeyFromObject(before), target)
	return true, nil
}

// Equal reports whether two objects have the same status, as the server has it.
func Equal(a, b client.Object) bool {
	change, err := difference(a, b)
	return err == nil && change == nil
}

// difference returns the merge patch from one status to the other, or nil when they are equal.
func difference(before, after client.Object) ([]byte, error) {
	from, err := statusOf(before)
	if err != nil {
		return nil, err
	}
	to, err := statusOf(after)
	if err != nil {
		return nil, err
	}
	change, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare the statuses of %s: %w", before.GetName(), err)
	}
	if string(change) == "{}" {
		return nil, nil
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": before.GetUID(), "resourceVersion": before.GetResourceVersion()},
		"status":   json.RawMessage(change),
	})
}

// statusOf returns the JSON of the object's status, "{}" when it has none.
func statusOf(o client.Object) (json.RawMessage, error) {
	whole, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.GetName(), err)
	}
	var part struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(whole, &part); err != nil {
		return nil, fmt.Errorf("find the status of %s: %w", o.GetName(), err)
	}
	if part.Status == nil {
		return json.RawMessage("{}"), nil
	}
	return part.Status, nil
}

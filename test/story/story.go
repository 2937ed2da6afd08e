package story

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Patience is how long a story waits for a condition: longer than the 2m3s after which a kubelet looks again at a volume
	// that it could not mount, for instance because the API server did not know yet that the node may read its claim, on a
	// machine that is busy.
	Patience = 6 * time.Minute

	// interval is the time between two looks.
	interval = 250 * time.Millisecond
)

// Eventually waits until the check returns nil, and fails the test with its last error. It can be used in a cleanup, too.
func Eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	eventually(context.WithoutCancel(t.Context()), t, what, check)
}

func eventually(ctx context.Context, t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		last := check(ctx)
		if last == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not come about within %s: %v", what, Patience, last)
		case <-time.After(interval):
		}
	}
}

// Want returns nil when the condition holds and otherwise an error with the text.
func Want(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// Edit changes the current object, and tries again on a conflict. o is set to the object that was written.
func Edit[T client.Object](t *testing.T, w World, o T, change func(T)) {
	t.Helper()
	Eventually(t, "the edit of "+o.GetName(), func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(o)
		return w.Client.Update(ctx, o)
	})
}

// Reaches waits until the check of the current object returns nil. o is set to that object.
func Reaches[T client.Object](t *testing.T, w World, o T, what string, check func(T) error) {
	t.Helper()
	Eventually(t, o.GetName()+": "+what, func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return check(o)
	})
}

// Gone waits until the object no longer exists.
func Gone(t *testing.T, w World, o client.Object) {
	t.Helper()
	Eventually(t, "the end of "+o.GetName(), func(ctx context.Context) error {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, Want(err != nil, "it is still there"))
	})
}

// Settles waits until the status of the workload is for its current spec, its condition Ready is True, and the check of the
// current object returns nil. A nil check demands nothing more. set is set to that object.
func Settles[T client.Object](t *testing.T, w World, set T, check func(T) error) {
	t.Helper()
	Reaches(t, w, set, "the end of its rollout", func(set T) error {
		if observed := statusOf(set).ObservedGeneration; observed != set.GetGeneration() {
			return fmt.Errorf("status describes generation %d of %d", observed, set.GetGeneration())
		}
		c := Condition(set, "Ready")
		err := Want(c.Status == metav1.ConditionTrue, "condition Ready is %+v", c)
		if check != nil {
			err = errors.Join(err, check(set))
		}
		return err
	})
}

// Condition returns the condition of that type in the object's status, whatever Go type it has there; its status is
// empty when there is none.
func Condition(o client.Object, name string) metav1.Condition {
	for _, c := range statusOf(o).Conditions {
		if c.Type == name {
			return c
		}
	}
	return metav1.Condition{}
}

// status is the part of a status that all kinds have.
type status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

func statusOf(o client.Object) status {
	var read struct {
		Status status `json:"status"`
	}
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		panic(fmt.Sprintf("read the status of %T: %v", o, err))
	}
	return read.Status
}

// WaitsFor waits until the object's condition Ready is False with the reason, and its message contains who.
func WaitsFor[T client.Object](t *testing.T, w World, o T, reason, who string) {
	t.Helper()
	Reaches(t, w, o, "condition Ready with reason "+reason, func(o T) error {
		c := Condition(o, "Ready")
		return Want(c.Status == metav1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, who), "condition Ready is %+v", c)
	})
}

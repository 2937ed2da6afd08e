package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStageFaults(t *testing.T) {
	const (
		head      = "package web\n"
		reconcile = "func (r *reconciler) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) { return r.pass(ctx, q) }\n"
		setUp     = "func SetUp(mgr ctrl.Manager) error { return nil }\n"
		fills     = "func (r *reconciler) snapshot() plan.Snapshot { return plan.Snapshot{Now: r.now()} }\n"
		generic   = "func look() { use(model.Snapshot[int]{Now: now()}) }\n"
		empty     = "func (r *reconciler) none() (plan.Snapshot, error) { return plan.Snapshot{}, errNone }\n"
		handles   = "func pods() handler.EventHandler { return nil }\n"
		selects   = "func changes() predicate.TypedPredicate[int] { return nil }\n"
		hears     = "func left(e event.UpdateEvent) bool { return true }\n"
		sends     = "func tell(to chan<- event.GenericEvent) {}\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"each in its file": {map[string]string{"controller.go": reconcile + empty + sends, "setup.go": setUp, "snapshot.go": fills, "watch.go": handles + selects + hears}, nil},
		"all in one": {map[string]string{"web.go": reconcile + setUp + fills + handles + selects + hears}, []string{
			"web/internal/web/web.go: Reconcile runs passes, which belongs into controller.go",
			"web/internal/web/web.go: SetUp adds the controller to a manager, which belongs into setup.go",
			"web/internal/web/web.go: changes maps events to keys, which belongs into watch.go",
			"web/internal/web/web.go: left maps events to keys, which belongs into watch.go",
			"web/internal/web/web.go: pods maps events to keys, which belongs into watch.go",
			"web/internal/web/web.go: snapshot fills a snapshot, which belongs into snapshot.go",
		}},
		"a workload of the frame": {map[string]string{"workload.go": generic, "watch.go": handles}, []string{"web/internal/web/workload.go: look fills a snapshot, which belongs into snapshot.go"}},
		"no controller":           {map[string]string{"events.go": handles + setUp + hears}, nil},
		"tests":                   {map[string]string{"controller.go": reconcile, "web_test.go": fills + handles}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			changed := map[string]string{}
			for file, content := range c.files {
				changed["web/internal/web/"+file] = head + content
			}
			root := repository(changed)
			workspace, err := Load(root)
			require.NoError(t, err)
			faults, err := StageFaults(root, workspace.Modules[1])
			require.NoError(t, err)
			assert.Equal(t, c.want, faults)
		})
	}
}

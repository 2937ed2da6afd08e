package manager

import (
	"context"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/operator/process"
)

// crdPause is the time between two reads of a CRD that does not exist. One that exists costs one request.
const crdPause = time.Second

// startup is the readiness of an operator: its controllers do not run yet, its webhooks cannot answer yet, or it was asked to
// end.
//
// It waits for caches as long as it must, and no longer: to fill them the API server may have to convert objects, and it
// reaches only replicas that are ready.
type startup struct{ process.Startup }

func newStartup() *startup {
	s := &startup{}
	s.waitsFor("the start")
	return s
}

func (s *startup) waitsFor(what string) { s.NotReady("waiting for " + what) }

// waitForCRDs returns when all definitions are established.
func (s *startup) waitForCRDs(ctx context.Context, env *Environment, names []string) error {
	return process.Kinds{
		Missing:   func(ctx context.Context) []string { return missingCRDs(ctx, env, names) },
		OnMissing: s.waitsFor, Interval: crdPause, Clock: env.Clock, Log: env.Log,
	}.Wait(ctx)
}

// waitForCaches ends the start when the webhooks have the data for their answers.
func (s *startup) waitForCaches(ctx context.Context, operator Operator, env *Environment) {
	if operator.Fill != nil {
		s.waitsFor("the caches of webhooks")
		waiting, cancel := context.WithTimeout(ctx, fillTimeout)
		defer cancel()
		if err := operator.Fill(waiting, env); err != nil && ctx.Err() == nil {
			env.Log.Info("Webhooks are served before their caches are filled", "reason", err.Error())
		}
	}
	if ctx.Err() == nil {
		s.Done()
	}
}

// Needs are the requirements of a controller: it cannot begin without them.
type Needs struct {
	// CRDs are the definitions of the kinds that it works on.
	CRDs []string
	// Reads are the kinds that it caches, by their plural names; of each it must be able to list and watch the objects. A
	// manager starts no controller before all of its caches are filled: one that may not be filled would block the other
	// controllers.
	Reads []schema.GroupResource
}

// After calls setUp, which adds controllers to the manager, when all is there that they need: before it returns if it is,
// else while the manager runs, as leader. A failure of setUp ends the manager. An operator of several kinds calls it from
// Setup for each of them, so that a missing need of one blocks no other.
func (e *Environment) After(ctx context.Context, needs Needs, setUp func(context.Context, *Environment) error) error {
	told := ""
	return optional.Begin(ctx, e.Manager, optional.Beginning{
		Ready: func(ctx context.Context) (bool, error) {
			missing := strings.Join(e.missing(ctx, needs), ", ")
			if missing != "" && missing != told {
				e.Log.Info("Controllers wait for missing kinds or permissions", "missing", missing)
			}
			told = missing
			return missing == "", nil
		},
		With:  func(ctx context.Context) error { return setUp(ctx, e) },
		Clock: e.Clock,
	})
}

// missing lists the needs that are not met yet. A permission counts as granted unless the server reports that it is
// lacking.
func (e *Environment) missing(ctx context.Context, needs Needs) []string {
	missing := missingCRDs(ctx, e, needs.CRDs)
	for _, kind := range needs.Reads {
		rights := optional.Rights{
			Namespace: e.Options.Namespace,
			Group:     kind.Group,
			Resource:  kind.Resource,
			Verbs:     []string{"list", "watch"},
		}
		verbs, err := rights.Lacking(ctx, e.Manager.GetClient())
		switch {
		case err != nil && ctx.Err() == nil:
			e.Log.Error(err, "Failed to check a permission", "resource", kind.String())
		case len(verbs) > 0:
			missing = append(missing, "permission to "+strings.Join(verbs, " and ")+" "+kind.String())
		}
	}
	return missing
}

// missingCRDs returns the definitions that cannot be used yet, each with the reason.
func missingCRDs(ctx context.Context, env *Environment, names []string) (missing []string) {
	for _, name := range names {
		if reason := lookForCRD(ctx, env.Manager, name); reason != "" {
			missing = append(missing, reason)
		}
	}
	return missing
}

// lookForCRD returns why a definition cannot be used yet, empty if it can.
func lookForCRD(ctx context.Context, cluster cluster.Cluster, name string) string {
	var crd apiextensionsv1.CustomResourceDefinition
	err := cluster.GetAPIReader().Get(ctx, client.ObjectKey{Name: name}, &crd)
	if apierrors.IsNotFound(err) {
		return "CRD " + name + " (not installed)"
	}
	if err != nil {
		return "CRD " + name + " (" + err.Error() + ")"
	}
	established := slices.ContainsFunc(crd.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	})
	if !established {
		return "CRD " + name + " (not established)"
	}
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	if _, err := cluster.GetRESTMapper().RESTMapping(kind); err != nil { // discovery comes a moment later
		return "CRD " + name + " (not served)"
	}
	return ""
}

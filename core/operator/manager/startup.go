package manager

import (
	"context"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/operator/process"
)

// crdPause is the time between two reads of a CRD that does not exist. One that exists costs one request.
const crdPause = time.Second

// separatePause is the same for a kind that may never be installed.
const separatePause = 5 * time.Second

// startup is the readiness of an operator whose controllers do not run yet.
//
// It does not wait for caches: to sync them the API server may have to convert objects, and it reaches only replicas
// that are ready.
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

// AfterCRDs calls setUp, which adds controllers to the manager, when all definitions are established: before it returns
// if they are, else while the manager runs, as leader. Operators with SeparateKinds call it from Setup. A failure of
// setUp ends the manager.
func (e *Environment) AfterCRDs(ctx context.Context, names []string, setUp func(context.Context, *Environment) error) error {
	if len(missingCRDs(ctx, e, names)) == 0 {
		return setUp(ctx, e)
	}
	return e.Manager.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		err := process.Kinds{
			Missing:   func(ctx context.Context) []string { return missingCRDs(ctx, e, names) },
			OnMissing: func(string) {}, Interval: separatePause, Clock: e.Clock, Log: e.Log,
		}.Wait(ctx)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		return setUp(ctx, e)
	}))
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

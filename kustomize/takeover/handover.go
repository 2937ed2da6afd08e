package takeover

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// handover makes one feature change hands. Every step can be done again.
type handover struct {
	cluster *apply.Cluster
	// before is the cluster as the old manager sees it.
	before *apply.Cluster
	old    openkruise.Manager
	// now is how far an earlier run came.
	now openkruise.Handover
	// recorded reports whether there is a record, without which nothing can be given back.
	recorded    bool
	kinds       []Kind
	manifests   []*unstructured.Unstructured
	replacement install.Replacement
	timeout     time.Duration
	// settle is how long all API servers may take to notice a change of a CRD.
	settle time.Duration
	clock  clock.Clock
	out    io.Writer
	report *cli.Report
	// progress shows the step that is under way, and what it waits for.
	progress *apply.Progress
}

// step is one step of a handover; it can be done again.
type step struct {
	name string
	do   func(context.Context) error
}

// run does the steps. The operator is started before anything of OpenKruise's changes: if it cannot start, no kind loses its
// controller. The parts that are taken away are recorded before; the account is refused before anything else changes, so
// that no step is answered by the old manager; a CRD is guarded in the write that makes it Flotilla's.
func (h *handover) run(ctx context.Context) error {
	if err := h.replacement.Prepare(ctx, h.cluster); err != nil {
		return err
	}
	steps := []step{
		{startStep, h.start},
		{"record the changes", h.record},
		{"reject writes of the old manager", h.refuse},
		{"turn its feature gates off", h.turnOff},
		{"remove its webhooks", h.removeWebhooks},
		{"install", func(ctx context.Context) error { return h.replacement.Install(ctx, h.cluster) }},
	}
	if h.feature() == "spread" {
		steps = slices.Insert(steps, len(steps)-1, step{"copy the list of further kinds", h.copyAllowed})
	}
	if err := h.do(ctx, openkruise.Over, steps); err != nil {
		return err
	}
	return h.note(ctx, openkruise.Over, "")
}

// do does steps one after the other. Each is written down before it begins, so that a run which is cut off is known.
func (h *handover) do(ctx context.Context, direction openkruise.Direction, steps []step) error {
	for _, s := range steps {
		if err := h.note(ctx, direction, s.name); err != nil {
			return err
		}
		if err := h.doStep(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// doStep does one step and tells how it ended.
func (h *handover) doStep(ctx context.Context, s step) error {
	h.progress.Begin(h.feature() + ": " + s.name)
	err := s.do(ctx)
	h.report.Step(h.feature(), s.name, "", err)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	h.progress.End("done")
	return nil
}

// note writes down which step begins; the empty step means that all were done.
func (h *handover) note(ctx context.Context, direction openkruise.Direction, step string) error {
	return h.save(ctx, func(object *unstructured.Unstructured) error {
		openkruise.Handover{Step: step, Direction: direction, From: h.old}.Write(object)
		return nil
	})
}

// save changes the ConfigMap of the handover.
func (h *handover) save(ctx context.Context, change func(*unstructured.Unstructured) error) error {
	object := openkruise.RecordOf(h.feature())
	live, err := h.cluster.Get(ctx, object)
	if err != nil {
		return err
	}
	if live != nil {
		for _, field := range []string{"data", "binaryData"} {
			if value, has := live.Object[field]; has {
				object.Object[field] = value
			}
		}
	}
	if err := change(object); err != nil {
		return err
	}
	if _, err = h.cluster.Apply(ctx, object, apply.Options{Force: true}); err != nil {
		return err
	}
	h.recorded = true
	return nil
}

// feature returns the name of the feature.
func (h *handover) feature() string { return h.replacement.Feature.Name }

func (h *handover) record(ctx context.Context) error {
	now, err := h.taken(ctx)
	if err != nil {
		return err
	}
	return h.save(ctx, func(object *unstructured.Unstructured) error {
		record, err := readRecord(object)
		if err != nil {
			return err
		}
		record.add(now)
		return record.write(object)
	})
}

// taken returns the parts that the following steps take away.
func (h *handover) taken(ctx context.Context) (Record, error) {
	record := Record{
		Webhooks:    map[string]Removed{},
		Definitions: map[string]any{},
		Labels:      map[string]map[string]string{},
		Annotations: map[string]map[string]string{},
	}
	found, err := existing(ctx, h.cluster, openkruise.Configurations())
	if err != nil {
		return record, err
	}
	for _, configuration := range found {
		_, removed, err := leave(configuration, h.kinds)
		if err != nil {
			return record, err
		}
		if !removed.Empty() {
			record.Webhooks[apply.Describe(configuration)] = removed
		}
	}
	crds, err := existing(ctx, h.cluster, h.crds())
	if err != nil {
		return record, err
	}
	for _, crd := range crds {
		// A CRD of Flotilla's is nothing to go back to.
		if !apply.Guarded(crd) && converter(crd) != converter(h.definition(crd.GetName())) {
			record.Definitions[crd.GetName()] = crd.Object["spec"]
			record.Labels[crd.GetName()] = crd.GetLabels()
			record.Annotations[crd.GetName()] = crd.GetAnnotations()
		}
	}
	deployments, err := h.old.Deployments(ctx, h.cluster)
	if err != nil {
		return record, err
	}
	for _, deployment := range deployments {
		_, gates := withGates(deployment, gatesOf(h.feature()), false)
		record.Gates = append(record.Gates, gates...)
	}
	return record, nil
}

func (h *handover) crds() []*unstructured.Unstructured {
	var crds []*unstructured.Unstructured
	for _, object := range h.manifests {
		if object.GetKind() == crdKind {
			crds = append(crds, object)
		}
	}
	return crds
}

// definition returns the CRD of the manifests with the name.
func (h *handover) definition(name string) *unstructured.Unstructured {
	crds := h.crds()
	return crds[slices.IndexFunc(crds, func(crd *unstructured.Unstructured) bool { return crd.GetName() == name })]
}

// refuse applies the policy and waits until it acts.
func (h *handover) refuse(ctx context.Context) error {
	for _, object := range h.policies() {
		if err := h.apply(ctx, object); err != nil {
			return err
		}
	}
	return apply.Await(ctx, h.timeout, h.progress.Tell, func(ctx context.Context) (bool, string, error) {
		resource, revision := probe(h.kinds[0])
		err := h.before.TryCreate(ctx, resource, revision)
		if err != nil && strings.Contains(err.Error(), openkruise.RecordName(h.feature())) {
			return true, "", nil
		}
		if err != nil {
			return false, "the effect of the policy cannot be checked: " + err.Error(), nil //nolint:nilerr // what it waits for
		}
		return false, "the policy has no effect yet", nil
	})
}

// probe returns an object that the old manager may write until the policy acts: a revision of an object of the kind.
func probe(kind Kind) (schema.GroupVersionResource, *unstructured.Unstructured) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "ControllerRevision",
		"revision":   int64(1),
		"data":       map[string]any{},
		"metadata": map[string]any{
			"name": "flotilla-takeover", "namespace": install.Namespace,
			"ownerReferences": []any{map[string]any{
				"apiVersion": kind.Group + "/" + kind.Version,
				"kind":       kind.Name,
				"name":       "flotilla-takeover",
				"uid":        "00000000-0000-0000-0000-000000000000",
				"controller": true,
			}},
		},
	}}
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}, object
}

// turnOff turns feature gates of the old manager off and waits until it has restarted.
func (h *handover) turnOff(ctx context.Context) error {
	return h.setGates(ctx, gatesOf(h.feature()), false)
}

func (h *handover) setGates(ctx context.Context, gates []gate, on bool) error {
	deployments, err := h.old.Deployments(ctx, h.cluster)
	if err != nil {
		return err
	}
	for _, deployment := range deployments {
		written := false
		if err := h.edit(ctx, deployment, func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			next, names := withGates(live, gates, on)
			written = len(names) > 0
			return next, nil
		}); err != nil {
			return err
		}
		if !written || !h.replacement.Wait {
			continue
		}
		ready := h.cluster.AllReady([]*unstructured.Unstructured{deployment})
		if err := apply.Await(ctx, h.timeout, h.progress.Tell, ready); err != nil {
			return err
		}
	}
	return nil
}

func (h *handover) removeWebhooks(ctx context.Context) error {
	for _, configuration := range openkruise.Configurations() {
		if err := h.edit(ctx, configuration, func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			next, _, err := leave(live, h.kinds)
			return next, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// edit changes an object, again if another client wrote it in between. One that does not exist is left out, and one that
// would not change is not written.
func (h *handover) edit(
	ctx context.Context, object *unstructured.Unstructured, change func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := h.cluster.Get(ctx, object)
		if err != nil || live == nil {
			return err
		}
		next, err := change(live)
		if err != nil || len(apply.Diff(live, next)) == 0 {
			return err
		}
		if err := h.cluster.Update(ctx, next); err != nil {
			return err
		}
		h.report.Object(h.feature(), cli.Configured, next, "")
		return nil
	})
}

// apply applies an object, and delete deletes one: both report what they did.
func (h *handover) apply(ctx context.Context, object *unstructured.Unstructured) error {
	live, err := h.cluster.Get(ctx, object)
	if err != nil {
		return err
	}
	after, err := h.cluster.Apply(ctx, object, apply.Options{Force: true})
	h.report.Applied(h.feature(), object, live, after, err)
	return err
}

func (h *handover) delete(ctx context.Context, object *unstructured.Unstructured) error {
	there, err := h.cluster.Delete(ctx, object)
	if err != nil {
		h.report.Object(h.feature(), cli.Refused, object, err.Error())
	} else if there {
		h.report.Object(h.feature(), cli.Removed, object, "")
	}
	return err
}

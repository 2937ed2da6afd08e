package install

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// admit refuses an install that would leave a kind with two controllers, and an install of older manifests over newer ones.
// It writes nothing.
func (i *installer) admit(ctx context.Context, cluster *apply.Cluster, parts []part) error {
	presence, err := openkruise.Look(ctx, cluster)
	if err != nil {
		return err
	}
	var faults []error
	for _, p := range parts {
		if p.name == Namespace {
			continue
		}
		live, err := liveOf(ctx, cluster, p.objects)
		if err != nil {
			return err
		}
		conflict := presence.Conflict(p.name, ofStage(live, apply.CRDs), func(namespace, name string) bool {
			service := named("v1", "Service", name)
			service.SetNamespace(namespace)
			found, err := cluster.Get(ctx, service)
			return err != nil || found != nil // who cannot be asked may be there
		})
		if conflict != "" {
			faults = append(faults, errors.New(conflict))
		}
		faults = append(faults, presence.MayRestrict(p.name, i.settings.OnlyNamespace))
		if !i.force {
			faults = append(faults, refuseReleased(ctx, cluster, p.name, live, ". To overwrite its fields anyway, add --force-conflicts"))
		}
		step := stepOf(live, p.objects)
		if step.skips() {
			text := fmt.Sprintf("%s: the upgrade from %s to %s skips minor versions; only upgrades to the next minor version are tested", p.name, step.from, step.to)
			i.report.Warn(text)
			fmt.Fprintln(i.streams.Out, text)
		}
		if step.down() && !i.downgrade && !i.diff {
			faults = append(faults, fmt.Errorf("%s %s is installed, and this command has %s: objects would lose the fields that are not in its CRDs; "+
				"use the command of %[2]s, or --allow-downgrade", p.name, step.from, step.to))
		}
	}
	return errors.Join(faults...)
}

// liveOf returns the CRDs and managers among the objects that exist.
func liveOf(ctx context.Context, cluster *apply.Cluster, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if !hasVersionLabel(object) {
			continue
		}
		live, err := cluster.Get(ctx, object)
		if err != nil {
			return nil, err
		}
		if live != nil {
			found = append(found, live)
		}
	}
	return found, nil
}

// hasVersionLabel reports whether an object's label has the version of an installation. CRDs stay when an operator goes.
func hasVersionLabel(object *unstructured.Unstructured) bool {
	return object.GetKind() == "CustomResourceDefinition" || object.GetKind() == "Deployment"
}

// versionStep is from which version to which one an install leads; empty where one is not known.
type versionStep struct{ from, to string }

// stepOf returns the newest version of the live objects and the newest version of the objects. Labels that are no versions
// are ignored.
func stepOf(live, objects []*unstructured.Unstructured) versionStep {
	return versionStep{from: newest(live), to: newest(objects)}
}

func newest(objects []*unstructured.Unstructured) string {
	var found *version.Version
	text := ""
	for _, object := range objects {
		label := object.GetLabels()["app.kubernetes.io/version"]
		if !hasVersionLabel(object) || object.GetLabels()["app.kubernetes.io/part-of"] != "flotilla" {
			continue
		}
		if v, err := version.ParseSemantic(label); err == nil && (found == nil || found.LessThan(v)) {
			found, text = v, label
		}
	}
	return text
}

// down reports whether the step leads to an older version. The part after a hyphen, such as in versions of your own images,
// does not count.
func (s versionStep) down() bool {
	from, errFrom := version.ParseSemantic(s.from)
	to, errTo := version.ParseSemantic(s.to)
	return errFrom == nil && errTo == nil && slices.Compare(to.Components(), from.Components()) < 0
}

// skips reports whether the step leaves out minor versions.
func (s versionStep) skips() bool {
	from, errFrom := version.ParseSemantic(s.from)
	to, errTo := version.ParseSemantic(s.to)
	return errFrom == nil && errTo == nil && from.Major() == to.Major() && to.Minor() > from.Minor()+1
}

// refuseTaken refuses to remove an operator of a feature that OpenKruise may not look after again.
func refuseTaken(presence openkruise.Presence, feature string) error {
	handover, taken := presence.Handovers[feature]
	if !taken || !presence.There() {
		return nil
	}
	return fmt.Errorf("%s was taken over from OpenKruise: without the operator, its kinds have no controller. To give it back and "+
		"remove the operator: %s", feature, handover.Undo())
}

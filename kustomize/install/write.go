package install

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// write applies objects of a part and returns how many of them changed.
func (i *installer) write(ctx context.Context, cluster *apply.Cluster, part string, objects []*unstructured.Unstructured) (changed int, err error) {
	for _, object := range objects {
		before, err := cluster.Get(ctx, object)
		if err != nil {
			return changed, err
		}
		if i.dryRun == dryRunServer && before == nil {
			// In a namespace that is not there yet the server would refuse.
			changed++
			i.did(part, cli.Created, object, "")
			continue
		}
		next := apply.KeepGuard(before, object)
		if i.guard && object.GetKind() == "CustomResourceDefinition" {
			next = apply.TakenOver(before, object)
		}
		after, err := cluster.Apply(ctx, next, apply.Options{Force: i.force, DryRun: i.dryRun == dryRunServer})
		action := i.report.Applied(featureOf(part), object, before, after, err)
		if err != nil {
			return changed, err
		}
		if action != cli.Unchanged {
			changed++
		}
	}
	return changed, nil
}

// did reports what was done to an object of a part.
func (i *installer) did(part string, action cli.Action, object *unstructured.Unstructured, why string) {
	i.report.Object(featureOf(part), action, object, why)
}

// featureOf returns the feature of a part. The namespace belongs to none.
func featureOf(part string) string {
	if part == Namespace {
		return ""
	}
	return part
}

func result(changed, all int, dryRun string) string {
	if dryRun == dryRunServer {
		return fmt.Sprintf("%d of %d objects would change", changed, all)
	}
	if changed == 0 {
		return "no changes"
	}
	return fmt.Sprintf("%d of %d objects changed", changed, all)
}

// compare shows the changes that applying would make. It is an answer no when something would change.
func (i *installer) compare(ctx context.Context, cluster *apply.Cluster, objects, stale []*unstructured.Unstructured) error {
	differs := len(stale)
	for _, object := range objects {
		before, err := cluster.Get(ctx, object)
		if err != nil {
			return err
		}
		feature := object.GetLabels()[FeatureLabel]
		if before == nil {
			differs++
			i.did(feature, cli.Created, object, "")
			fmt.Fprintf(i.streams.Out, "%s: new\n", apply.Describe(object))
			continue
		}
		next := apply.KeepGuard(before, object)
		after, err := cluster.Apply(ctx, next, apply.Options{Force: i.force, DryRun: true})
		conflict := ""
		if apierrors.IsConflict(err) {
			// This is how an install would end.
			conflict = err.Error()
			fmt.Fprintf(i.streams.Out, "%s\n", err)
			after, err = cluster.Apply(ctx, next, apply.Options{Force: true, DryRun: true})
		}
		if err != nil {
			return err
		}
		lines := apply.Diff(before, after)
		switch {
		case conflict != "":
			i.did(feature, cli.Refused, object, conflict)
		case len(lines) == 0:
			i.did(feature, cli.Unchanged, object, "")
		default:
			i.did(feature, cli.Configured, object, strings.Join(lines, "\n"))
		}
		if len(lines) > 0 {
			differs++
			fmt.Fprintf(i.streams.Out, "%s:\n  %s\n", apply.Describe(object), strings.Join(lines, "\n  "))
		}
	}
	for _, object := range stale {
		i.did(object.GetLabels()[FeatureLabel], cli.Removed, object, "")
		fmt.Fprintf(i.streams.Out, "%s: would be deleted\n", apply.Describe(object))
	}
	if differs > 0 {
		return cli.NoErrorf("%d of %d objects differ", differs, len(objects)+len(stale))
	}
	fmt.Fprintf(i.streams.Out, "all %d objects match the manifests\n", len(objects))
	return nil
}

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// NewUninstallCommand returns "flotilla uninstall".
func NewUninstallCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	var u uninstaller
	var output cli.Output
	command := &cobra.Command{
		Use:   "uninstall FEATURE...",
		Short: "Remove operators; workloads and their pods stay",
		Long: `Remove operators. CRDs, objects and all pods stay; an operator that is installed again continues with them.
--delete-crds --yes also deletes the CRDs, all objects of their kinds, and the pods of these objects. The namespace stays.`,
		Example: `  flotilla uninstall cloneset
  flotilla uninstall cloneset --delete-crds         # shows the objects that would be lost
  flotilla uninstall cloneset --delete-crds --yes`,
		Args:              cli.Arguments(Features),
		ValidArgsFunction: completeFeatures,
		RunE: func(command *cobra.Command, names []string) error {
			features, err := catalog.Select(names...)
			if err != nil {
				return cli.MisuseErrorf("%s", err)
			}
			if u.yes && !u.crds {
				return cli.MisuseErrorf("--yes can only be used with --delete-crds")
			}
			report := &cli.Report{Command: "uninstall", DryRun: u.dryRun}
			return cli.Reporting(command.Context(), flags, streams, output, report, func(
				flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams, report *cli.Report,
			) error {
				u.streams, u.report = streams, report
				cluster, err := apply.Connect(flags)
				if err != nil {
					return err
				}
				if err := cluster.Reach(); err != nil {
					return err
				}
				return u.run(command.Context(), cluster, features)
			})
		},
	}
	set := command.Flags()
	set.BoolVar(&u.crds, "delete-crds", false, "also delete the CRDs and all objects of their kinds; needs --yes")
	set.BoolVar(&u.yes, "yes", false, "confirm --delete-crds")
	set.BoolVar(&u.dryRun, "dry-run", false, "show the objects that would be deleted without deleting them")
	set.DurationVar(&u.timeout, "timeout", patience, "time limit of each deletion: of the objects with their pods, and of the CRDs")
	output.AddTo(set)
	return command
}

type uninstaller struct {
	streams           genericiooptions.IOStreams
	report            *cli.Report
	crds, yes, dryRun bool
	timeout           time.Duration
}

func (u *uninstaller) run(ctx context.Context, cluster *apply.Cluster, features []catalog.Feature) error {
	presence, err := openkruise.Look(ctx, cluster)
	if err != nil {
		return err
	}
	for _, feature := range features {
		if err := errors.Join(refuseTaken(presence, feature.Name), u.refuseReleased(ctx, cluster, feature)); err != nil {
			return err
		}
	}
	if u.crds && (u.dryRun || !u.yes) {
		if err := u.warn(ctx, cluster, features); err != nil || !u.dryRun {
			return errors.Join(err, unconfirmed())
		}
	}
	for _, feature := range features {
		if !u.dryRun {
			if err := mayRemove(ctx, cluster, feature, u.crds); err != nil {
				return err
			}
		}
		if err := u.tellHeld(ctx, cluster, feature); err != nil {
			return err
		}
		u.tellLeft(ctx, cluster, feature)
	}
	for _, feature := range features {
		if err := u.remove(ctx, cluster, feature); err != nil {
			return fmt.Errorf("uninstall %s: %w", feature.Name, err)
		}
	}
	return nil
}

// mayRemove checks the rights to delete the objects of a feature.
func mayRemove(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature, crds bool) error {
	objects, err := removable(ctx, cluster, feature)
	if err != nil {
		return err
	}
	gone := append(leftovers(feature, objects), objects...)
	var rights []apply.Right
	if crds {
		for _, crd := range ofStage(objects, apply.CRDs) {
			rights = append(rights, apply.Right{Resource: ResourceOf(crd), Verbs: []string{"list", "get", "delete"}})
		}
		gone = append(gone, openkruise.Leftovers(feature.Name)...)
	} else {
		gone = slices.DeleteFunc(gone, func(o *unstructured.Unstructured) bool { return apply.StageOf(o) == apply.CRDs })
	}
	return errors.Join(cluster.Has(ctx, rights...), cluster.Check(ctx, gone, "delete"))
}

// warnOf prints and reports a fact that the user should know.
func (u *uninstaller) warnOf(text string) {
	u.report.Warn(text)
	fmt.Fprintln(u.streams.Out, text)
}

func unconfirmed() error {
	return cli.MisuseErrorf("nothing was deleted. To delete the CRDs, all these objects and their pods, add --yes")
}

// ResourceOf returns the resource that a CRD defines, in the version that is stored.
func ResourceOf(crd *unstructured.Unstructured) schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	resource := schema.GroupVersionResource{Group: group, Resource: plural}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		if fields, ok := version.(map[string]any); ok && fields["storage"] == true {
			resource.Version, _ = fields["name"].(string)
		}
	}
	return resource
}

// remove deletes the operator: objects and CRDs first, if asked for, because the operator converts and admits the objects; then
// webhooks, so that no request waits for a manager that is gone.
func (u *uninstaller) remove(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) error {
	objects, err := removable(ctx, cluster, feature)
	if err != nil {
		return err
	}
	progress := apply.NewProgress(u.streams.Out)
	if u.crds {
		crds := ofStage(objects, apply.CRDs)
		if err := u.unprotect(ctx, cluster, progress, feature.Name, crds); err != nil {
			return err
		}
		if err := u.removeObjects(ctx, cluster, progress, feature.Name, crds); err != nil {
			return err
		}
		if _, err := u.removeStage(ctx, cluster, progress, feature.Name, apply.CRDs, crds, true); err != nil {
			return err
		}
	}
	kept, gone := leftovers(feature, objects), 0
	for _, stage := range []string{apply.Webhooks, apply.Managers, apply.Rights} {
		members := ofStage(objects, stage)
		if stage == apply.Managers {
			members = append(members, kept...)
		}
		n, err := u.removeStage(ctx, cluster, progress, feature.Name, stage, members, false)
		if err != nil {
			return err
		}
		gone += n
	}
	switch {
	case gone == 0:
		fmt.Fprintf(u.streams.Out, "%s: the operator was not installed\n", feature.Name)
	case !u.crds:
		fmt.Fprintf(u.streams.Out, "%s: CRDs, their objects and all pods stay\n", feature.Name)
		for _, crd := range ofStage(objects, apply.CRDs) {
			u.report.Object(feature.Name, cli.Unchanged, crd, "it stays with its objects")
			u.report.Leave(apply.Describe(crd))
			if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
				u.warnOf(fmt.Sprintf("%s: until the operator is installed again, only requests in version %s succeed", crd.GetName(), ResourceOf(crd).Version))
			}
		}
	}
	return nil
}

// removable returns the objects of a feature, whatever its version and components: objects that install applied have its
// label. Manifests that another tool applied have none, and are known by their names: those that a component of the feature
// may have brought, and the roles of a manager that is restricted to a namespace.
func removable(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) ([]*unstructured.Unstructured, error) {
	definitions := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	labelled, err := cluster.ListKinds(ctx, append(Prunable(), definitions), FeatureLabel+"="+feature.Name)
	if err != nil {
		return nil, err
	}
	named, err := everything(ctx, cluster, feature)
	if err != nil {
		return nil, err
	}
	var live []*unstructured.Unstructured
	for _, object := range named {
		found, err := cluster.Get(ctx, object)
		if err != nil {
			return nil, err
		}
		if found != nil {
			live = append(live, found)
		}
	}
	return Removable(feature, labelled, live), nil
}

// Removable returns which live objects go with a feature: those with its label that install applied, then those that have
// the names of its manifests, unless another feature has labelled them or all features share them.
func Removable(feature catalog.Feature, labelled, live []*unstructured.Unstructured) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	there := map[string]bool{}
	add := func(object *unstructured.Unstructured) {
		if name := identity(object); !there[name] {
			there[name] = true
			found = append(found, object)
		}
	}
	for _, object := range labelled {
		if apply.Applied(object) {
			add(object)
		}
	}
	for _, object := range live {
		owner := object.GetLabels()[FeatureLabel]
		if (owner == "" || owner == feature.Name) && !IsShared(object) {
			add(object)
		}
	}
	return found
}

// everything returns the manifests of a feature with all its components, for the whole cluster and for the namespace that
// its manager is restricted to.
func everything(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) ([]*unstructured.Unstructured, error) {
	settings := Everything(feature)
	objects, err := Manifests(feature, settings)
	if err != nil {
		return nil, err
	}
	present, err := Present(ctx, cluster, feature)
	if err != nil || present.OnlyNamespace == "" {
		return objects, err
	}
	settings.OnlyNamespace = present.OnlyNamespace
	restricted, err := Manifests(feature, settings)
	return append(objects, restricted...), err
}

// removeStage deletes objects of a feature and returns how many there were. A stage without any is not shown.
func (u *uninstaller) removeStage(
	ctx context.Context, cluster *apply.Cluster, progress *apply.Progress, feature, stage string, objects []*unstructured.Unstructured, wait bool,
) (n int, err error) {
	var gone []string
	defer func() {
		if len(gone) > 0 && !u.dryRun {
			u.report.Step(feature, "remove "+stage, apply.Count(len(gone), "object", "objects")+" deleted", err)
		}
	}()
	for _, object := range objects {
		live, err := cluster.Get(ctx, object)
		if err != nil {
			return 0, err
		}
		if live == nil {
			continue
		}
		if len(gone) == 0 {
			progress.Begin(feature + " " + stage)
		}
		gone = append(gone, apply.Describe(object))
		if !u.dryRun {
			if _, err := cluster.Delete(ctx, object); err != nil {
				u.report.Object(feature, cli.Refused, object, err.Error())
				return 0, err
			}
		}
		u.report.Object(feature, cli.Removed, object, "")
	}
	if len(gone) == 0 {
		return 0, nil
	}
	if u.dryRun {
		progress.End(fmt.Sprintf("%s would be deleted: %s", apply.Count(len(gone), "object", "objects"), strings.Join(gone, ", ")))
		return len(gone), nil
	}
	if wait {
		if err := apply.Await(ctx, u.timeout, progress.Tell, allGone(cluster, objects)); err != nil {
			return 0, err
		}
	}
	progress.End(apply.Count(len(gone), "object", "objects") + " deleted")
	return len(gone), nil
}

func allGone(cluster *apply.Cluster, objects []*unstructured.Unstructured) apply.Check {
	return func(ctx context.Context) (bool, string, error) {
		var left []string
		for _, object := range objects {
			live, err := cluster.Get(ctx, object)
			if err != nil {
				return false, "", err
			}
			if live != nil {
				left = append(left, apply.Describe(object))
			}
		}
		return len(left) == 0, strings.Join(left, ", ") + " still has objects", nil
	}
}

func ofStage(objects []*unstructured.Unstructured, name string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return apply.StageOf(o) != name })
}

// named returns an object in the operators' namespace by its name.
func named(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(Namespace)
	o.SetName(name)
	return o
}

// leftovers are the objects that a manager makes for itself. One that is among the live objects may have another Lease by
// its flags.
func leftovers(feature catalog.Feature, live []*unstructured.Unstructured) []*unstructured.Unstructured {
	kept := []*unstructured.Unstructured{
		named("v1", "Secret", feature.Name+"-webhook-certs"),
		named("v1", "Secret", feature.Name+"-webhook-ca"), // of cert-manager
		named("coordination.k8s.io/v1", "Lease", feature.Name+"-manager"),
	}
	for _, object := range live {
		if object.GetKind() != "Deployment" || object.GetName() != feature.Name+"-manager" {
			continue
		}
		if lease := apply.LeaseOf(object); lease != nil && identity(lease) != identity(kept[2]) {
			kept = append(kept, lease)
		}
	}
	return kept
}

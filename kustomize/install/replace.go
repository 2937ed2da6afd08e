package install

import (
	"context"
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// Replacement installs a feature in the place of another controller that looked after its kinds, and takes it away again.
type Replacement struct {
	Feature  catalog.Feature
	Settings Settings
	// Wait waits until the operator is ready, for each stage at most for the Timeout.
	Wait    bool
	Timeout time.Duration
	// Out is where progress is shown; Report, unless nil, gets what was done.
	Out    io.Writer
	Report *cli.Report
}

// Recall adds the settings that an earlier run has chosen and this one does not set, and prints them.
func (r *Replacement) Recall(ctx context.Context, cluster *apply.Cluster) (err error) {
	r.Settings, err = r.installer().recall(ctx, cluster, r.Feature)
	return err
}

// Prepare applies the namespace.
func (r Replacement) Prepare(ctx context.Context, cluster *apply.Cluster) error {
	base, err := Base()
	if err != nil {
		return err
	}
	_, err = r.installer().write(ctx, cluster, Namespace, base)
	return err
}

// Start applies the objects that the operator needs to run, its rights, Service and Deployment, and waits until a pod of its
// image runs. Without webhook configurations it does no more: it waits for them before it leads.
func (r Replacement) Start(ctx context.Context, cluster *apply.Cluster) error {
	objects, err := Manifests(r.Feature, r.Settings)
	if err != nil {
		return err
	}
	i := r.installer()
	progress := apply.NewProgress(r.Out)
	for _, stage := range apply.Stages(objects) {
		if stage.Name != apply.Rights && stage.Name != apply.Managers {
			continue
		}
		if err := i.stage(ctx, cluster, progress, r.Feature.Name, stage); err != nil {
			return err
		}
	}
	return nil
}

// Install applies the feature; fields that others set are taken over, and CRDs are guarded in the same write.
func (r Replacement) Install(ctx context.Context, cluster *apply.Cluster) error {
	objects, err := Manifests(r.Feature, r.Settings)
	if err != nil {
		return err
	}
	return r.installer().install(ctx, cluster, apply.NewProgress(r.Out), part{name: r.Feature.Name, objects: objects})
}

// MayRemove checks the rights that Remove needs.
func (r Replacement) MayRemove(ctx context.Context, cluster *apply.Cluster) error {
	return mayRemove(ctx, cluster, r.Feature, false)
}

// Remove deletes the objects that Install applied; CRDs, objects and pods stay.
func (r Replacement) Remove(ctx context.Context, cluster *apply.Cluster) error {
	u := uninstaller{
		streams: genericiooptions.IOStreams{Out: r.Out},
		report:  r.Report,
		timeout: r.Timeout,
	}
	return u.remove(ctx, cluster, r.Feature)
}

func (r Replacement) installer() *installer {
	return &installer{
		streams:  genericiooptions.IOStreams{Out: r.Out},
		report:   r.Report,
		settings: r.Settings,
		dryRun:   dryRunNone,
		force:    true,
		guard:    true,
		wait:     r.Wait,
		timeout:  r.Timeout,
	}
}

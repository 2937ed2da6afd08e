package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/charts"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
)

// chartsOf writes the charts of a feature: of its operator, and of its CRDs.
func (o Options) chartsOf(ctx context.Context, r Release) error {
	features, err := catalog.Select(r.Module)
	if err != nil {
		return err
	}
	feature := features[0]
	feature.Version = r.To
	operator, definitions, err := charts.Of(feature, o.Registry)
	if err != nil {
		return err
	}
	return o.writeCharts(ctx, r, operator, definitions)
}

// umbrellas writes the charts that have all features at the versions of their manifests, and the chart of the parts that they share.
func (o Options) umbrellas(ctx context.Context, r Release) error {
	all, err := charts.All(r.To, o.Registry)
	if err != nil {
		return err
	}
	for _, chart := range all {
		switch chart.Name {
		case charts.Umbrella, charts.Definitions, charts.Base:
			if err := o.writeCharts(ctx, r, chart); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeCharts writes archives of charts among the files of a release, and stores the charts with the images.
func (o Options) writeCharts(ctx context.Context, r Release, all ...charts.Chart) error {
	target := images.Options{Output: filepath.Join(o.Output, "images")}
	if o.Push {
		target.Registry = o.Registry
	}
	for _, chart := range all {
		archive, err := chart.Archive()
		if err != nil {
			return err
		}
		name := filepath.Join(o.assets(r), chart.Name+"-"+chart.Version+".tgz")
		if err := os.WriteFile(name, archive, 0o644); err != nil { //nolint:gosec // for everybody
			return err
		}
		content, err := chart.Image()
		if err != nil {
			return err
		}
		if _, err := target.Store(ctx, "flotilla/charts/"+chart.Name, content, chart.Version); err != nil {
			return fmt.Errorf("store chart %s: %w", chart.Name, err)
		}
	}
	return nil
}

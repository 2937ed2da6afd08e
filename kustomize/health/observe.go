package health

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// Report is the state of one feature.
type Report struct {
	Feature string `json:"feature"`
	// Installed means that there is a manager.
	Installed bool `json:"installed"`
	// Version is the tag of the manager's image, Available the tag of the image in this command's manifests.
	Version   string `json:"version,omitempty"`
	Available string `json:"available"`
	OutOfDate bool   `json:"outOfDate"`
	// Newer means that the manager is newer than this command.
	Newer   bool `json:"newer,omitempty"`
	Healthy bool `json:"healthy"`
	// Faults name the objects that are missing or do not work.
	Faults []string `json:"faults,omitempty"`
	// Takeover reports that the feature has begun to change hands with OpenKruise and has not ended.
	Takeover string `json:"takeover,omitempty"`
	// TakenOver reports that the feature was taken over from OpenKruise, and how to continue.
	TakenOver string `json:"takenOver,omitempty"`
	// OpenKruise reports that it looks after the kinds of a feature that is not installed, and how to take that over.
	OpenKruise string `json:"openKruise,omitempty"`

	// wanted are the objects of the manifests, live the existing ones among them by their description.
	wanted []*unstructured.Unstructured
	live   map[string]*unstructured.Unstructured
	// leftOut are the components that the installation leaves out by choice.
	leftOut []string
	// manager is nil when there is none.
	manager *unstructured.Unstructured
	// refused is why pods of the node agent cannot be made; it counts while the agent is not ready.
	refused string
	// handover is nil when the feature was never taken over from OpenKruise, or was given back.
	handover *openkruise.Handover
}

// Observe reads the installed objects of a feature.
func Observe(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature, clock clock.Clock) (*Report, error) {
	settings, err := install.Present(ctx, cluster, feature)
	if err != nil {
		return nil, err
	}
	wanted, err := install.Manifests(feature, settings)
	if err != nil {
		return nil, err
	}
	report := &Report{
		Feature:   feature.Name,
		Available: feature.Version,
		wanted:    wanted,
		live:      map[string]*unstructured.Unstructured{},
	}
	for _, object := range wanted {
		live, err := cluster.Get(ctx, object)
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		report.live[apply.Describe(object)] = live
		if live.GetKind() == "DaemonSet" {
			if report.refused, err = cluster.PodsRefused(ctx, live); err != nil {
				return nil, err
			}
		}
		if live.GetKind() == "Deployment" {
			report.manager = live
		}
	}
	report.leaveOut(feature, settings.Without)
	report.judge()
	return report, report.followLeader(ctx, cluster, clock)
}

// judge fills in the fields that follow from the objects.
func (r *Report) judge() {
	r.Installed = r.manager != nil
	if !r.Installed {
		return
	}
	r.Version = tag(r.manager)
	r.OutOfDate = older(r.Version, r.Available)
	r.Newer = older(r.Available, r.Version)
	for _, object := range r.wanted {
		name := apply.Describe(object)
		live, there := r.live[name]
		if !there {
			r.Faults = append(r.Faults, name+" is missing")
			continue
		}
		if ready, waitsFor := apply.Ready(live); !ready {
			if live.GetKind() == "DaemonSet" && r.refused != "" {
				waitsFor += ": " + r.refused
			}
			r.Faults = append(r.Faults, name+" "+waitsFor)
		}
		if apply.IsLenient(live) {
			r.Faults = append(r.Faults, name+" ignores failures, because the installation ended before the operator was ready")
		}
	}
	// Managers and agents that do not work are the cause of other faults.
	slices.SortStableFunc(r.Faults, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	r.Healthy = len(r.Faults) == 0
}

// besideOpenKruise returns how OpenKruise looks after the kinds of the feature; empty if it does not.
func (r *Report) besideOpenKruise(presence openkruise.Presence) string {
	var crds []*unstructured.Unstructured
	for _, live := range r.live {
		if live.GetKind() == "CustomResourceDefinition" {
			crds = append(crds, live)
		}
	}
	return presence.Owns(r.Feature, crds)
}

func rank(fault string) int {
	if strings.HasPrefix(fault, "Deployment ") || strings.HasPrefix(fault, "DaemonSet ") {
		return 0
	}
	return 1
}

// tag returns the tag of a Deployment's image. An image with only a digest gets the version of its manifests and the
// beginning of the digest as build metadata.
func tag(deployment *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	fields, _ := containers[0].(map[string]any)
	image, _ := fields["image"].(string)
	name, digest, pinned := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[i+1:]
	}
	if !pinned {
		return "latest"
	}
	const told = 12
	_, hash, _ := strings.Cut(digest, ":")
	build := hash[:min(told, len(hash))]
	if label := deployment.GetLabels()["app.kubernetes.io/version"]; label != "" {
		return label + "+" + build
	}
	return build
}

// older reports whether a version is older than another. A text that is no version is not older.
func older(have, available string) bool {
	a, errA := version.ParseSemantic(have)
	b, errB := version.ParseSemantic(available)
	return errA == nil && errB == nil && a.LessThan(b)
}

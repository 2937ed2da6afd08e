package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/conversion"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

// FeatureGates are the feature gates that admission asks.
type FeatureGates struct {
	// PreDownload honours the settings of image pre-download.
	PreDownload bool
	// DeletionProtection refuses to delete sets that carry a label which asks for that.
	DeletionProtection bool
	// Forecast warns of the effect that an edit of the template has on the pods.
	Forecast bool
}

// Rules answer requests about DaemonSets.
type Rules struct {
	// Templates asks the cluster about pod templates.
	Templates podtemplate.Validator
	// Nodes reads the nodes of the cluster. A failed read costs a warning.
	Nodes client.Reader
	// InPlace names the changes that a running pod allows in this cluster.
	InPlace      inplace.Options
	FeatureGates FeatureGates
}

// NewWebhook answers the API server about DaemonSets.
func NewWebhook(rules Rules) admission.Webhook[*v1beta1.DaemonSet] {
	w := admission.Webhook[*v1beta1.DaemonSet]{
		Kind: admission.NewKind(contract.AppsGroup, v1beta1.Kind,
			admission.Hub[v1beta1.DaemonSet](v1beta1.GroupVersion.Version),
			admission.Spoke[v1beta1.DaemonSet](v1alpha1.GroupVersion.Version, admission.Conversion[*v1beta1.DaemonSet, *v1alpha1.DaemonSet]{
				ToHub:   conversion.ToHub,
				FromHub: conversion.FromHub,
				Path:    conversion.V1alpha1Path,
			}),
		),
		Default:  Default,
		Validate: rules.validate,
		Convert:  conversion.Convert,
	}
	if rules.FeatureGates.DeletionProtection {
		w.Delete = refuseDeletion
	}
	return w
}

// validate validates a request. The error carries an API status and reports that the cluster did not answer.
func (r Rules) validate(ctx context.Context, req admission.Request[*v1beta1.DaemonSet]) (admission.Findings, error) {
	var before *podtemplate.Template
	if req.Old != nil {
		before = &podtemplate.Template{Pod: &req.Old.Spec.Template}
	}
	now := podtemplate.Template{Pod: &req.New.Spec.Template}
	change, err := r.Templates.ValidateChange(ctx, req.New.Namespace, now, before, specPath().Child("template"))
	if err != nil {
		return admission.Findings{}, err
	}
	found := admission.Findings{
		Errors:   Validate(req.New, req.Old, Facts{Version: req.Version, Template: change}),
		Warnings: Warnings(req.New, r.FeatureGates, r.nodes(ctx, req.New)),
	}
	if r.FeatureGates.Forecast && req.Old != nil && len(found.Errors) == 0 {
		found.Warnings = append(found.Warnings, plan.Forecast(req.Old, req.New, r.InPlace).Warnings()...)
	}
	return found, nil
}

// nodes returns the nodes of the cluster where warnings for the set depend on them.
func (r Rules) nodes(ctx context.Context, set *v1beta1.DaemonSet) []corev1.Node {
	var list corev1.NodeList
	if !usesNodes(set) {
		return nil
	}
	if err := r.Nodes.List(ctx, &list); err != nil {
		log.FromContext(ctx).V(1).Info("Validated a request without the nodes", "error", err)
		return nil
	}
	return list.Items
}

// refuseDeletion: a DaemonSet has no replicas that protection Cascading could count.
func refuseDeletion(set *v1beta1.DaemonSet) error {
	return admission.RefuseDeletion(schema.GroupResource{Group: contract.AppsGroup, Resource: "daemonsets"}, set, 0)
}

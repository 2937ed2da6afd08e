// Package templates stands in for the API server that validates pod templates. Only tests may import it.
//
// A pod template goes in; no error, and a copy without defaults, comes out.
package templates

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
)

// Validator returns a validator of pod templates without an API server: a cluster that finds no error and has no defaults.
func Validator() podtemplate.Validator { return podtemplate.Validator{Cluster: silent{}} }

type silent struct{}

// Validate implements podtemplate.Cluster.
func (silent) Validate(context.Context, string, *corev1.PodTemplateSpec, *field.Path, ...string) (field.ErrorList, error) {
	return nil, nil
}

// Default implements podtemplate.Cluster.
func (silent) Default(_ context.Context, _ string, template *corev1.PodTemplateSpec, _ ...string) (*corev1.PodTemplateSpec, error) {
	return template.DeepCopy(), nil
}

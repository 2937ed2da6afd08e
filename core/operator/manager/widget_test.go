package manager

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/operator/admission"
)

const (
	widgetGroup = "example.com"
	widgetCRD   = "widgets.example.com"
)

// widget is the hub version of the kind that the operator of these tests owns.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct {
		Strategy struct {
			Type string `json:"type,omitempty"`
		} `json:"strategy"`
	} `json:"spec"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &copied
}

// oldWidget is the same kind as v1alpha1.
type oldWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct {
		StrategyType string `json:"strategyType,omitempty"`
	} `json:"spec"`
}

func (w *oldWidget) DeepCopyObject() runtime.Object {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &copied
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []widget `json:"items"`
}

func (w *widgetList) DeepCopyObject() runtime.Object {
	copied := *w
	copied.Items = nil
	for _, item := range w.Items {
		copied.Items = append(copied.Items, *item.DeepCopyObject().(*widget))
	}
	return &copied
}

func addWidgets(scheme *runtime.Scheme) error {
	hub := schema.GroupVersion{Group: widgetGroup, Version: "v1beta1"}
	scheme.AddKnownTypeWithName(hub.WithKind("Widget"), &widget{})
	scheme.AddKnownTypeWithName(hub.WithKind("WidgetList"), &widgetList{})
	metav1.AddToGroupVersion(scheme, hub)
	spoke := schema.GroupVersion{Group: widgetGroup, Version: "v1alpha1"}
	scheme.AddKnownTypeWithName(spoke.WithKind("Widget"), &oldWidget{})
	metav1.AddToGroupVersion(scheme, spoke)
	return nil
}

func widgetKind() admission.Kind[*widget] {
	return admission.NewKind(widgetGroup, "Widget",
		admission.Hub[widget]("v1beta1"),
		admission.Spoke[widget, oldWidget]("v1alpha1", admission.Conversion[*widget, *oldWidget]{
			ToHub: func(src *oldWidget, dst *widget) error {
				dst.ObjectMeta = src.ObjectMeta
				dst.Spec.Strategy.Type = src.Spec.StrategyType
				return nil
			},
			FromHub: func(src *widget, dst *oldWidget) error {
				dst.ObjectMeta = src.ObjectMeta
				dst.Spec.StrategyType = src.Spec.Strategy.Type
				return nil
			},
			Path: func(hub string) string {
				if hub == "spec.strategy.type" {
					return "spec.strategyType"
				}
				return hub
			},
		}))
}

// widgetWebhooks recreates by default and refuses a strategy that does not exist.
func widgetWebhooks(context.Context, *Environment) (Webhooks, error) {
	kind := widgetKind()
	defaults := func(_ context.Context, req admission.Request[*widget]) error {
		if req.New.Spec.Strategy.Type == "" {
			req.New.Spec.Strategy.Type = "Recreate"
		}
		return nil
	}
	validate := func(_ context.Context, req admission.Request[*widget]) (admission.Findings, error) {
		findings := admission.Findings{Warnings: []string{"widgets are for tests"}}
		if req.New != nil && req.New.Spec.Strategy.Type == "Odd" {
			findings.Errors = field.ErrorList{field.Invalid(field.NewPath("spec", "strategy", "type"), "Odd", "is not known")}
		}
		return findings, nil
	}
	return Webhooks{
		Mutating:   []admission.Endpoint{{Path: kind.MutatePath(), Handler: kind.Defaulting(defaults)}},
		Validating: []admission.Endpoint{{Path: kind.ValidatePath(), Handler: kind.Validating(validate)}},
		Converting: admission.Converting(kind.Convert),
	}, nil
}

// widgetDefinition converts by a webhook at a URL.
func widgetDefinition(url string) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", XPreserveUnknownFields: new(true)},
				},
			}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: widgetCRD},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", false), version("v1beta1", true)},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new(url + admission.ConvertPath)},
				},
			},
		},
	}
}

package certs

import (
	"bytes"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reference is one place in an object that has a bundle.
type reference struct {
	path    string // JSON pointer of the caBundle
	present []byte
	guard   operation // a test operation that fails if path means something else now
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// references lists the places of an object that have a bundle. A CRD without a conversion webhook has none.
func references(object client.Object) []reference {
	var all []reference
	webhook := func(i int, name string, bundle []byte) {
		path := fmt.Sprintf("/webhooks/%d", i)
		all = append(all, reference{
			path:    path + "/clientConfig/caBundle",
			present: bundle,
			guard: operation{
				Op:    "test",
				Path:  path + "/name",
				Value: name,
			},
		})
	}
	switch object := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i, entry := range object.Webhooks {
			webhook(i, entry.Name, entry.ClientConfig.CABundle)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i, entry := range object.Webhooks {
			webhook(i, entry.Name, entry.ClientConfig.CABundle)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if converts(object) && object.Spec.Conversion.Webhook.ClientConfig != nil {
			all = append(all, reference{
				path:    "/spec/conversion/webhook/clientConfig/caBundle",
				present: object.Spec.Conversion.Webhook.ClientConfig.CABundle,
				guard: operation{
					Op:    "test",
					Path:  "/spec/conversion/strategy",
					Value: apiextensionsv1.WebhookConverter,
				},
			})
		}
	}
	return all
}

func converts(crd *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := crd.Spec.Conversion
	return conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter && conversion.Webhook != nil
}

// convertedByOthers reports whether an object is a CRD that another Service converts, such as the CRD of an operator that
// still owns its kinds: the clients of that Service trust its own CA.
func (s Settings) convertedByOthers(object client.Object) bool {
	crd, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || !converts(crd) || crd.Spec.Conversion.Webhook.ClientConfig == nil {
		return false
	}
	service := crd.Spec.Conversion.Webhook.ClientConfig.Service
	return service != nil && (service.Namespace != s.Namespace || service.Name != s.ServiceName)
}

// injection returns the JSON patch that writes a bundle into an object, nil if nothing differs. It changes nothing but
// caBundle, and applies only if the webhook and its bundle are still those that were read: of two replicas, the one
// with the older Secret cannot win.
func injection(object client.Object, bundle []byte) ([]byte, error) {
	var operations []operation
	for _, reference := range references(object) {
		if bytes.Equal(reference.present, bundle) {
			continue
		}
		operations = append(operations, reference.guard)
		if len(reference.present) > 0 {
			operations = append(operations, operation{
				Op:    "test",
				Path:  reference.path,
				Value: reference.present,
			})
		}
		operations = append(operations, operation{Op: "add", Path: reference.path, Value: bundle})
	}
	if len(operations) == 0 {
		return nil, nil
	}
	return json.Marshal(operations)
}

// checkExternal returns an error if an object lacks the bundle, which is maintained externally.
func checkExternal(object client.Object, bundle []byte) error {
	bundle = bytes.TrimSpace(bundle)
	for _, reference := range references(object) {
		if bytes.Equal(bytes.TrimSpace(reference.present), bundle) {
			continue
		}
		if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
			return fmt.Errorf("caBundle of CRD %s does not match external caBundle", crd.Name)
		}
		return fmt.Errorf("caBundle of %s %s does not match the external caBundle", kindOf(object), object.GetName())
	}
	if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok && converts(crd) && crd.Spec.Conversion.Webhook.ClientConfig == nil {
		return fmt.Errorf("bad conversion configuration of CRD %s", crd.Name)
	}
	return nil
}

// kindOf returns the kind of an object, even if its type meta is empty.
func kindOf(object client.Object) string {
	switch object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		return "MutatingWebhookConfiguration"
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		return "ValidatingWebhookConfiguration"
	case *apiextensionsv1.CustomResourceDefinition:
		return "CustomResourceDefinition"
	default:
		return "Secret"
	}
}

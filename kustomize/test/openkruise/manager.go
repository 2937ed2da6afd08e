// Package openkruise stands in for OpenKruise's manager, for tests alone. In addition, it has the manifests of the manager's
// objects on a cluster: the rights of its account, and its webhooks.
package openkruise

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

const (
	// Account is who the manager is.
	Account = "system:serviceaccount:kruise-system:kruise-manager"
	// Namespace is where its webhooks are.
	Namespace = "kruise-system"
	// Service is how they are reached.
	Service = "kruise-webhook-service"
)

var definitions = schema.GroupVersionResource{ //nolint:gochecknoglobals // a constant
	Group:    "apiextensions.k8s.io",
	Version:  "v1",
	Resource: "customresourcedefinitions",
}

// configurations returns the names of the manager's webhook configurations, by resource.
func configurations() map[schema.GroupVersionResource]string {
	resource := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: name}
	}
	return map[schema.GroupVersionResource]string{
		resource("mutatingwebhookconfigurations"):   "kruise-mutating-webhook-configuration",
		resource("validatingwebhookconfigurations"): "kruise-validating-webhook-configuration",
	}
}

// Manager behaves as OpenKruise's manager does: at each pass, and so at each start, it rebuilds its webhook
// configurations from their templates and writes its own conversion into the CRDs that it knows.
type Manager struct {
	// Objects are written as the manager.
	Objects dynamic.Interface

	bundle string // of its CA
}

// New returns the manager on a cluster, with the rights that its account has there. The config is of a user who may
// impersonate it.
func New(config *rest.Config) (Manager, error) {
	config = apply.Repeating(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: Account}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return Manager{}, fmt.Errorf("make a client: %w", err)
	}
	bundle, err := authority()
	if err != nil {
		return Manager{}, fmt.Errorf("make a CA: %w", err)
	}
	return Manager{Objects: objects, bundle: bundle}, nil
}

// Pass is a pass over webhook configurations and CRDs; an error keeps the manager from starting. An object that another
// client has written at the same time, such as the status of a CRD, is read again.
func (m Manager) Pass(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return m.once(ctx) })
}

func (m Manager) once(ctx context.Context) error {
	for resource, name := range configurations() {
		list, err := m.Objects.Resource(resource).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := m.rebuild(ctx, resource, &list.Items[i]); err != nil {
				return fmt.Errorf("rebuild %s: %w", list.Items[i].GetName(), err)
			}
		}
	}
	list, err := m.Objects.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := m.convert(ctx, &list.Items[i]); err != nil {
			return fmt.Errorf("convert %s: %w", list.Items[i].GetName(), err)
		}
	}
	return nil
}

func (m Manager) rebuild(ctx context.Context, resource schema.GroupVersionResource, configuration *unstructured.Unstructured) error {
	annotations := configuration.GetAnnotations()
	before, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	if annotations["template"] == "" {
		text, err := json.Marshal(before)
		if err != nil {
			return err
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["template"] = string(text)
		configuration.SetAnnotations(annotations)
	}
	wrapped := &unstructured.Unstructured{}
	if err := wrapped.UnmarshalJSON([]byte(`{"kind": "Template", "webhooks": ` + annotations["template"] + `}`)); err != nil {
		return err
	}
	after, _, _ := unstructured.NestedSlice(wrapped.Object, "webhooks")
	for _, webhook := range after {
		fields, _ := webhook.(map[string]any)
		if err := unstructured.SetNestedField(fields, m.bundle, "clientConfig", "caBundle"); err != nil {
			return err
		}
	}
	configuration.Object["webhooks"] = after
	_, err := m.Objects.Resource(resource).Update(ctx, configuration, metav1.UpdateOptions{})
	return err
}

// convert writes the manager's conversion into the CRD of CloneSets, unless it does not know the first version.
func (m Manager) convert(ctx context.Context, crd *unstructured.Unstructured) error {
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	first, _ := versions[0].(map[string]any)
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	if kind != "CloneSet" || strategy != "Webhook" || first["name"] != "v1alpha1" && first["name"] != "v1beta1" {
		return nil
	}
	config := m.Conversion()
	have, _, _ := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook")
	if reflect.DeepEqual(have, config) {
		return nil
	}
	if err := unstructured.SetNestedMap(crd.Object, config, "spec", "conversion", "webhook"); err != nil {
		return err
	}
	_, err := m.Objects.Resource(definitions).Update(ctx, crd, metav1.UpdateOptions{})
	return err
}

// Conversion returns the field spec.conversion.webhook of a CRD that the manager converts.
func (m Manager) Conversion() map[string]any {
	return map[string]any{
		"clientConfig": map[string]any{"caBundle": m.bundle, "service": map[string]any{
			"namespace": Namespace, "name": Service, "path": "/convert", "port": int64(443),
		}},
		"conversionReviewVersions": []any{"v1", "v1beta1"},
	}
}

// authority returns the certificate of a new CA, as caBundle has it.
func authority() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now(),
		NotAfter:     time.Now().Add(time.Hour),
		IsCA:         true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})), nil
}

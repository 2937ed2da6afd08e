package takeover_test

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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// oldUser is who OpenKruise's manager is.
const oldUser = "system:serviceaccount:kruise-system:kruise-manager"

// standIn behaves as OpenKruise's manager does: at each pass, and so at each start, it rebuilds its webhook
// configurations from their templates and writes its own conversion into the CRDs that it knows.
type standIn struct {
	objects dynamic.Interface
}

// newStandIn returns a manager that may do everything.
func newStandIn(t *testing.T) standIn {
	t.Helper()
	config := rest.CopyConfig(configOf(t, clitest.Administrator))
	config.Impersonate = rest.ImpersonationConfig{UserName: oldUser}
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return standIn{objects: objects}
}

// pass is a pass over webhook configurations and CRDs; an error keeps the manager from starting. What somebody else has
// written meanwhile, such as the status of a CRD, is read again.
func (s standIn) pass(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return s.once(ctx) })
}

func (s standIn) once(ctx context.Context) error {
	for _, resource := range webhooks {
		list, err := s.objects.Resource(resource).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + oldName[resource.Resource]})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := s.rebuild(ctx, &list.Items[i]); err != nil {
				return fmt.Errorf("rebuild %s: %w", list.Items[i].GetName(), err)
			}
		}
	}
	list, err := s.objects.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := s.convert(ctx, &list.Items[i]); err != nil {
			return fmt.Errorf("convert %s: %w", list.Items[i].GetName(), err)
		}
	}
	return nil
}

func (s standIn) rebuild(ctx context.Context, configuration *unstructured.Unstructured) error {
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
		config := webhook.(map[string]any)["clientConfig"].(map[string]any)
		config["caBundle"] = "b2xk"
	}
	configuration.Object["webhooks"] = after
	_, err := s.objects.Resource(resourceOf[configuration.GetKind()]).Update(ctx, configuration, metav1.UpdateOptions{})
	return err
}

// known are the kinds and versions that the manager has in its scheme.
var known = map[string]bool{"CloneSet v1alpha1": true, "CloneSet v1beta1": true, "StatefulSet v1alpha1": true, "StatefulSet v1beta1": true}

func (s standIn) convert(ctx context.Context, crd *unstructured.Unstructured) error {
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	if strategy != "Webhook" || !known[kind+" "+versions[0].(map[string]any)["name"].(string)] {
		return nil
	}
	config := conversionBy("kruise-system", "kruise-webhook-service")
	have, _, _ := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook")
	if reflect.DeepEqual(have, config) {
		return nil
	}
	if err := unstructured.SetNestedMap(crd.Object, config, "spec", "conversion", "webhook"); err != nil {
		return err
	}
	_, err := s.objects.Resource(definitions).Update(ctx, crd, metav1.UpdateOptions{})
	return err
}

func conversionBy(namespace, service string) map[string]any {
	return map[string]any{
		"clientConfig": map[string]any{"caBundle": bundle, "service": map[string]any{
			"namespace": namespace, "name": service, "path": "/convert", "port": int64(443),
		}},
		"conversionReviewVersions": []any{"v1", "v1beta1"},
	}
}

// bundle is the CA of the old manager.
var bundle = authority()

func authority() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

package certs

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newClient returns a client for the four kinds of this package. It uses no discovery, so that the operator's role
// needs the named objects only.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"), meta.RESTScopeRoot)
	mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// watched is one object that is watched by its name.
type watched struct {
	key      client.ObjectKey
	empty    func() client.Object
	informer cache.SharedIndexInformer
}

func watchSecret(c client.WithWatch, key client.ObjectKey) watched {
	return watchByName(c, key, func() client.Object { return &corev1.Secret{} }, func() client.ObjectList { return &corev1.SecretList{} })
}

func watchMutating(c client.WithWatch, name string) watched {
	return watchByName(c, client.ObjectKey{Name: name},
		func() client.Object { return &admissionregistrationv1.MutatingWebhookConfiguration{} },
		func() client.ObjectList { return &admissionregistrationv1.MutatingWebhookConfigurationList{} })
}

func watchValidating(c client.WithWatch, name string) watched {
	return watchByName(c, client.ObjectKey{Name: name},
		func() client.Object { return &admissionregistrationv1.ValidatingWebhookConfiguration{} },
		func() client.ObjectList { return &admissionregistrationv1.ValidatingWebhookConfigurationList{} })
}

func watchCRD(c client.WithWatch, name string) watched {
	return watchByName(c, client.ObjectKey{Name: name},
		func() client.Object { return &apiextensionsv1.CustomResourceDefinition{} },
		func() client.ObjectList { return &apiextensionsv1.CustomResourceDefinitionList{} })
}

// watchByName returns an informer of a single object. With the field selector on the name, a role with resourceNames
// allows list and watch.
func watchByName(c client.WithWatch, key client.ObjectKey, empty func() client.Object, list func() client.ObjectList) watched {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{
			Namespace:     key.Namespace,
			FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name),
			Raw:           &raw,
			Limit:         raw.Limit,
			Continue:      raw.Continue,
		}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			into := list()
			return into, c.List(ctx, into, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list(), options(raw))
		},
	}
	return watched{
		key:      key,
		empty:    empty,
		informer: cache.NewSharedIndexInformer(source, empty(), 0, cache.Indexers{}),
	}
}

// start runs the informer until ctx ends, and calls changed on every event.
func (w watched) start(ctx context.Context, changed func()) error {
	if err := w.informer.SetTransform(trim); err != nil {
		return fmt.Errorf("watch %s: %w", w.key.Name, err)
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
	if _, err := w.informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watch %s: %w", w.key.Name, err)
	}
	go w.informer.RunWithContext(ctx)
	return nil
}

// trim drops fields that this package does not read; the schema of a CRD is large.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{Conversion: crd.Spec.Conversion}
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return object, nil
}

// cached returns the object as the watch last saw it, nil if there is none. It must not be changed.
func (w watched) cached() (client.Object, error) {
	key := w.key.Name
	if w.key.Namespace != "" {
		key = w.key.Namespace + "/" + w.key.Name
	}
	object, exists, err := w.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return nil, err
	}
	return object.(client.Object), nil
}

// live reads the object from the server; nil when there is none.
func (w watched) live(ctx context.Context, reader client.Reader) (client.Object, error) {
	object := w.empty()
	if err := reader.Get(ctx, w.key, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

package testenv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/bundle"
)

const (
	// cleaner is the user who removes what tests have made. The webhooks of the environment are not asked about it, because
	// they are served for as long as the test lasts only.
	cleaner = "cleaner"
	// cleanTime is how long the removal of a namespace may take.
	cleanTime = await.Limit
)

// addCleaner makes the cleaner, and excludes it from the webhooks of the environment.
func (e *Environment) addCleaner(ctx context.Context) error {
	user, err := e.plane.AddUser(envtest.User{Name: cleaner, Groups: []string{"system:masters"}}, rest.CopyConfig(e.Config))
	if err != nil {
		return fmt.Errorf("add user %s: %w", cleaner, err)
	}
	e.cleaner = user.Config()
	e.cleaner.QPS, e.cleaner.UserAgent = -1, cleaner
	e.cleaner.WarningHandler = rest.NoWarnings{} // it reads deprecated kinds, too
	c, err := client.New(e.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	others := admissionregistrationv1.MatchCondition{Name: cleaner, Expression: "request.userInfo.username != '" + cleaner + "'"}
	for _, o := range e.envtest.WebhookInstallOptions.MutatingWebhooks {
		for i := range o.Webhooks {
			o.Webhooks[i].MatchConditions = append(o.Webhooks[i].MatchConditions, others)
		}
		if err := c.Update(ctx, o); err != nil {
			return fmt.Errorf("exclude %s from %s: %w", cleaner, o.Name, err)
		}
	}
	for _, o := range e.envtest.WebhookInstallOptions.ValidatingWebhooks {
		for i := range o.Webhooks {
			o.Webhooks[i].MatchConditions = append(o.Webhooks[i].MatchConditions, others)
		}
		if err := c.Update(ctx, o); err != nil {
			return fmt.Errorf("exclude %s from %s: %w", cleaner, o.Name, err)
		}
	}
	return nil
}

// cleanUp keeps a bundle of a failed test, and removes its namespace with all objects.
func (e *Environment) cleanUp(t testing.TB, namespace string) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), cleanTime)
	defer stop()
	if t.Failed() {
		if _, err := e.bundle(ctx, t, namespace); err != nil {
			t.Logf("the bundle is not complete: %v", err)
		}
	}
	e.tests.mu.Lock()
	delete(e.tests.logs, t)
	e.tests.mu.Unlock()
	if err := e.empty(ctx, namespace); err != nil {
		t.Logf("objects are left behind: %v", err)
	}
}

// empty removes the namespace and all of its objects, as the namespace and garbage collectors do on a whole cluster. No
// object can be made in the namespace from the moment at which it begins.
func (e *Environment) empty(ctx context.Context, namespace string) error {
	kube, err := kubernetes.NewForConfig(e.cleaner)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	objects, err := metadata.NewForConfig(e.cleaner)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w", namespace, err)
	}
	resources, err := bundle.Resources(e.cleaner)
	problems := []error{err}
	for _, r := range resources {
		of := objects.Resource(r).Namespace(namespace)
		list, err := of.List(ctx, metav1.ListOptions{})
		if err != nil {
			if !apierrors.IsNotFound(err) { // a CRD may be gone by now
				problems = append(problems, fmt.Errorf("list %s: %w", r.Resource, err))
			}
			continue
		}
		for i := range list.Items {
			if err := remove(ctx, of, &list.Items[i]); client.IgnoreNotFound(err) != nil {
				problems = append(problems, fmt.Errorf("delete %s %s: %w", r.Resource, list.Items[i].Name, err))
			}
		}
	}
	_, err = kube.CoreV1().Namespaces().Finalize(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.UpdateOptions{})
	return errors.Join(append(problems, client.IgnoreNotFound(err))...)
}

// remove deletes the object at once. Nobody is there to do the work for which its finalizers wait.
func remove(ctx context.Context, of metadata.ResourceInterface, o *metav1.PartialObjectMetadata) error {
	if len(o.Finalizers) > 0 {
		_, err := of.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
	}
	now := int64(0)
	background := metav1.DeletePropagationBackground
	return of.Delete(ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background})
}

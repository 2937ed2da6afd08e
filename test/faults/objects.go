package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/install"
)

// spoilCertificates replaces all values in the Secrets of webhooks. The operators repair them.
func spoilCertificates(ctx context.Context, s *Stage) error {
	for _, feature := range Features() {
		secret := &corev1.Secret{}
		secret.Namespace = install.Namespace
		secret.Name = feature + "-webhook-certs"
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return fmt.Errorf("read the certificates of %s: %w", feature, err)
		}
		for key := range secret.Data {
			secret.Data[key] = []byte("garbage")
		}
		if err := s.Client.Update(ctx, secret); err != nil {
			return fmt.Errorf("replace the certificates of %s: %w", feature, err)
		}
	}
	return nil
}

// takeRights empties the ClusterRoles of all managers and of the node agent, and keeps what they had.
func takeRights(ctx context.Context, s *Stage) error {
	s.saved = nil
	roles := &unstructured.UnstructuredList{}
	roles.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleList"))
	if err := s.Client.List(ctx, roles); err != nil {
		return fmt.Errorf("list roles: %w", err)
	}
	for i := range roles.Items {
		role := &roles.Items[i]
		feature, kind, _ := strings.Cut(role.GetName(), "-")
		if !slices.Contains(Features(), feature) || kind != "agent" && !strings.HasPrefix(kind, "manager") {
			continue
		}
		s.saved = append(s.saved, *role.DeepCopy())
		role.Object["rules"] = []any{}
		if err := s.Client.Update(ctx, role); err != nil {
			return fmt.Errorf("empty role %s: %w", role.GetName(), err)
		}
	}
	return nil
}

// giveRights gives the rules back.
func giveRights(ctx context.Context, s *Stage) error {
	for i := range s.saved {
		role := s.saved[i].DeepCopy()
		err := until(ctx, func(ctx context.Context) error {
			role.SetResourceVersion("")
			return s.Client.Update(ctx, role)
		})
		if err != nil {
			return fmt.Errorf("restore role %s: %w", role.GetName(), err)
		}
	}
	return nil
}

// pullJobs is the kind that the fault of a missing kind removes: workloads pull images ahead with it where it is there.
func pullJobs() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "ImagePullJob"}
}

func pullJobDefinition() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("imagepulljobs.apps.kruise.io")
	return crd
}

// removeKind deletes the CRD of ImagePullJobs, and with it all of them. It keeps copies.
func removeKind(ctx context.Context, s *Stage) error {
	list := &unstructured.UnstructuredList{}
	crd := pullJobDefinition()
	list.SetGroupVersionKind(pullJobs().GroupVersion().WithKind("ImagePullJobList"))
	if err := errors.Join(s.Client.List(ctx, list), s.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd)); err != nil {
		return fmt.Errorf("read the objects of the kind: %w", err)
	}
	s.saved = append([]unstructured.Unstructured{*crd.DeepCopy()}, list.Items...)
	if err := s.Client.Delete(ctx, crd); err != nil {
		return fmt.Errorf("delete the kind: %w", err)
	}
	return until(ctx, func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		if err == nil {
			return errors.New("the kind is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// restoreKind creates the CRD and its objects again, as an administrator would from a backup.
func restoreKind(ctx context.Context, s *Stage) error {
	for i := range s.saved {
		o := s.saved[i].DeepCopy()
		o.SetResourceVersion("")
		o.SetUID("")
		delete(o.Object, "status")
		err := until(ctx, func(ctx context.Context) error {
			err := s.Client.Create(ctx, o.DeepCopy())
			if apierrors.IsAlreadyExists(err) || namespaceIsGone(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("create %s %s again: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// namespaceIsGone reports whether the namespace of an object does not exist or is being deleted: that of an earlier fault.
func namespaceIsGone(err error) bool {
	var status apierrors.APIStatus
	missing := errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
	return missing || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// slowWebhooks stops the processes of all managers for two seconds of each three, for half a minute. A request to a
// webhook takes up to two seconds.
func slowWebhooks(ctx context.Context, s *Stage) error {
	for range 10 {
		if err := s.signalManagers(ctx, syscall.SIGSTOP); err != nil {
			return err
		}
		linger(ctx, 2*time.Second)
		if err := s.signalManagers(ctx, syscall.SIGCONT); err != nil {
			return err
		}
		linger(ctx, time.Second)
	}
	return nil
}

func fastWebhooks(ctx context.Context, s *Stage) error { return s.signalManagers(ctx, syscall.SIGCONT) }

func (s *Stage) signalManagers(ctx context.Context, signal syscall.Signal) error {
	pods, err := s.managers(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		if strings.Contains(pods[i].Name, "-manager-") {
			if err := s.signal(&pods[i], signal); err != nil {
				return err
			}
		}
	}
	return nil
}

// alarm sets or clears the alarm of etcd with which it refuses writes when its database has reached its quota.
func alarm(action string) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		transport := &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return s.Cluster.DialContext(ctx, address)
			},
		}
		body := fmt.Sprintf(`{"action":%q,"alarm":"NOSPACE"}`, action)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:2379/v3/maintenance/alarm", bytes.NewBufferString(body))
		if err != nil {
			return fmt.Errorf("ask etcd for an alarm: %w", err)
		}
		response, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
		if err != nil {
			return fmt.Errorf("ask etcd for an alarm: %w", err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("ask etcd for an alarm: %s %s: %w", response.Status, text, err)
		}
		return nil
	}
}

package imagepulljob

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/pods/imageref"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// snapshot reads the objects of one job.
func (r *reconciler) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	s := plan.Snapshot{TTL: r.ttl, Now: r.Clock.Now()}
	var err error
	if s.Job, err = fastclient.Get[v1beta1.ImagePullJob](ctx, r.Reader, key); err != nil {
		return s, fmt.Errorf("read image pull job %s: %w", key, err)
	}
	ended := isEnded(s.Job)
	if s.Secrets, err = r.readSecrets(ctx, s.Job, ended); err != nil || ended {
		return s, err
	}
	if s.Targets, s.Absent, err = r.targets(ctx, s.Job); err != nil {
		return s, err
	}
	if len(s.Targets) == 0 {
		if s.NoNodeImages, err = r.noNodeImages(ctx); err != nil {
			return s, err
		}
	}
	if len(s.Targets) > 1 {
		if s.NotReady, err = r.ready.notReady(ctx); err != nil {
			return s, err
		}
	}
	if s.Secrets.Gone, err = r.goneSecrets(ctx, s.Job, &s); err != nil {
		return s, err
	}
	if s.Owned, err = fastclient.ByIndex[nodeimage.NodeImage](ctx, r.Reader, "", jobIndex, string(s.Job.UID)); err != nil {
		return s, fmt.Errorf("read the node images of a job: %w", err)
	}
	return s, nil
}

func isEnded(job *v1beta1.ImagePullJob) bool {
	return job.DeletionTimestamp != nil || job.Status.CompletionTime != nil
}

func usesPods(job *v1beta1.ImagePullJob) bool { return job.Spec.PodSelector != nil }

// targets returns the NodeImages of the selected nodes in the order in which they begin, and how many nodes with names
// have none.
func (r *reconciler) targets(ctx context.Context, job *v1beta1.ImagePullJob) ([]*nodeimage.NodeImage, int, error) {
	if usesPods(job) {
		names, err := r.pods.nodes(ctx, job)
		if err != nil {
			return nil, 0, err
		}
		found, _, err := r.named(ctx, names)
		return found, 0, err
	}
	if s := job.Spec.Selector; s != nil && s.Names != nil {
		return r.named(ctx, s.Names)
	}
	all, err := fastclient.All[nodeimage.NodeImage](ctx, r.Reader, "")
	if err != nil {
		return nil, 0, fmt.Errorf("read node images: %w", err)
	}
	matches, err := matcher(job)
	if err != nil {
		return nil, 0, err
	}
	all = slices.DeleteFunc(all, func(o *nodeimage.NodeImage) bool { return o.DeletionTimestamp != nil || !matches(o.Labels) })
	slices.SortFunc(all, func(a, b *nodeimage.NodeImage) int { return cmp.Compare(a.Name, b.Name) })
	return all, 0, nil
}

// noNodeImages reports whether there are nodes and none of them has a NodeImage: their manager has not begun yet.
func (r *reconciler) noNodeImages(ctx context.Context) (bool, error) {
	images, err := fastclient.All[nodeimage.NodeImage](ctx, r.Reader, "")
	if err != nil || len(images) > 0 {
		return false, err
	}
	withAgents, err := labels.NewRequirement(nodeimage.NodeTypeLabel, selection.NotEquals, []string{nodeimage.VirtualKubelet})
	if err != nil {
		return false, fmt.Errorf("select nodes: %w", err)
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	err = r.Live.List(ctx, nodes, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*withAgents)}, client.Limit(1))
	if err != nil {
		return false, fmt.Errorf("look for nodes: %w", err)
	}
	return len(nodes.Items) > 0, nil
}

// matcher returns whether the labels of a node match the job's selector; without one all do.
func matcher(job *v1beta1.ImagePullJob) (func(map[string]string) bool, error) {
	if job.Spec.Selector == nil {
		return func(map[string]string) bool { return true }, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&job.Spec.Selector.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("read spec.selector: %w", err)
	}
	return func(l map[string]string) bool { return selector.Matches(labels.Set(l)) }, nil
}

// named returns the NodeImages with these names, each once and in order, and how many there are not.
func (r *reconciler) named(ctx context.Context, names []string) (found []*nodeimage.NodeImage, absent int, err error) {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		image, err := fastclient.Get[nodeimage.NodeImage](ctx, r.Reader, types.NamespacedName{Name: name})
		switch {
		case apierrors.IsNotFound(err):
			absent++
		case err != nil:
			return nil, 0, fmt.Errorf("read node image %s: %w", name, err)
		case image.DeletionTimestamp == nil:
			found = append(found, image)
		}
	}
	return found, absent, nil
}

// usesCopies reports whether the job has copies of secrets made, or has had some made.
func usesCopies(job *v1beta1.ImagePullJob) bool {
	return len(job.Spec.PullSecrets) > 0 && !isEnded(job) || slices.Contains(job.Finalizers, v1beta1.ProtectionFinalizer)
}

// readSecrets reads the secrets of a job, of which an ended job needs the copies only.
func (r *reconciler) readSecrets(ctx context.Context, job *v1beta1.ImagePullJob, ended bool) (plan.Secrets, error) {
	s := plan.Secrets{Namespace: r.namespace, NamespaceReady: true, Sources: map[string]*corev1.Secret{}}
	if usesCopies(job) {
		s.Lacking = r.vault.access.Lacking(ctx)
	}
	if s.Unread = r.over != nil; s.Unread || len(s.Lacking) > 0 {
		return s, nil
	}
	copies := map[types.UID]*corev1.Secret{}
	keys := []string{userKey(job.Namespace + "/" + job.Name)}
	if !ended && job.Namespace != r.namespace && len(job.Spec.PullSecrets) > 0 {
		s.NamespaceReady = r.secrets.namespaceReady(ctx)
		for _, name := range job.Spec.PullSecrets {
			key := types.NamespacedName{Namespace: job.Namespace, Name: name}
			keys = append(keys, sourceKey(key))
			if secret, known := r.secrets.get(ctx, key); known {
				s.Sources[name] = secret
			}
			taken, err := r.takenNames(ctx, key)
			if err != nil {
				return s, err
			}
			s.Taken = append(s.Taken, taken...)
		}
	}
	for _, key := range keys {
		found, err := fastclient.ByIndex[corev1.Secret](ctx, r.Reader, "", copyIndex, key)
		if err != nil {
			return s, fmt.Errorf("read copies of secrets: %w", err)
		}
		for _, c := range found {
			copies[c.UID] = c
		}
	}
	for _, c := range copies {
		s.Copies = append(s.Copies, c)
	}
	slices.SortFunc(s.Copies, func(a, b *corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

// goneSecrets returns the names of the secrets that do not exist, of those in the namespace of the copies that the targets
// refer to for the image of the job.
func (r *reconciler) goneSecrets(ctx context.Context, job *v1beta1.ImagePullJob, s *plan.Snapshot) (gone []string, err error) {
	if s.Secrets.Unread || len(s.Secrets.Lacking) > 0 {
		return nil, nil
	}
	ref, err := imageref.Parse(job.Spec.Image)
	if err != nil {
		return nil, nil //nolint:nilerr // the plan tells of it
	}
	seen := map[string]bool{}
	for _, target := range s.Targets {
		for _, secret := range target.Spec.Images[ref.Name].PullSecrets {
			if secret.Namespace != r.namespace || seen[secret.Name] {
				continue
			}
			seen[secret.Name] = true
			_, err := fastclient.Get[corev1.Secret](ctx, r.Reader, types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name})
			switch {
			case apierrors.IsNotFound(err) && r.secrets.gone(ctx, secret.Name):
				gone = append(gone, secret.Name)
			case client.IgnoreNotFound(err) != nil:
				return nil, fmt.Errorf("read secret %s: %w", secret.Name, err)
			}
		}
	}
	return gone, nil
}

// takenNames returns which names of a copy of the secret others have.
func (r *reconciler) takenNames(ctx context.Context, source types.NamespacedName) (taken []string, err error) {
	for _, name := range plan.CopyNames(source) {
		other, err := fastclient.Get[corev1.Secret](ctx, r.Reader, types.NamespacedName{Namespace: r.namespace, Name: name})
		switch {
		case err == nil && !plan.IsCopyOf(other, source):
			taken = append(taken, name)
		case err != nil && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read secret %s: %w", name, err)
		}
	}
	return taken, nil
}

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

	"github.com/flotilla-project/flotilla/core/pods/imageref"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// snapshot reads the objects of one job.
func (p *passes) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	s := plan.Snapshot{TTL: p.TTL, Now: p.Clock.Now()}
	var err error
	if s.Job, err = p.Shown.Job(ctx, key); err != nil {
		return s, fmt.Errorf("read image pull job %s: %w", key, err)
	}
	ended := isEnded(s.Job)
	if s.Secrets, err = p.readSecrets(ctx, s.Job, ended); err != nil || ended {
		return s, err
	}
	if s.Targets, s.Absent, err = p.targets(ctx, s.Job); err != nil {
		return s, err
	}
	if len(s.Targets) == 0 {
		if s.NoNodeImages, err = p.noNodeImages(ctx); err != nil {
			return s, err
		}
	}
	if len(s.Targets) > 1 {
		if s.NotReady, err = p.notReady(ctx); err != nil {
			return s, err
		}
	}
	if s.Secrets.Gone, err = p.goneSecrets(ctx, s.Job, &s); err != nil {
		return s, err
	}
	if s.Owned, err = p.Shown.NodeImagesOf(ctx, s.Job.UID); err != nil {
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
func (p *passes) targets(ctx context.Context, job *v1beta1.ImagePullJob) ([]*nodeimage.NodeImage, int, error) {
	if usesPods(job) {
		names, err := p.pods.nodes(ctx, job)
		if err != nil {
			return nil, 0, err
		}
		found, _, err := p.named(ctx, names)
		return found, 0, err
	}
	if s := job.Spec.Selector; s != nil && s.Names != nil {
		return p.named(ctx, s.Names)
	}
	all, err := p.Shown.NodeImages(ctx)
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
func (p *passes) noNodeImages(ctx context.Context) (bool, error) {
	images, err := p.Shown.NodeImages(ctx)
	if err != nil || len(images) > 0 {
		return false, err
	}
	withAgents, err := labels.NewRequirement(nodeimage.NodeTypeLabel, selection.NotEquals, []string{nodeimage.VirtualKubelet})
	if err != nil {
		return false, fmt.Errorf("select nodes: %w", err)
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	err = p.Live.List(ctx, nodes, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*withAgents)}, client.Limit(1))
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
func (p *passes) named(ctx context.Context, names []string) (found []*nodeimage.NodeImage, absent int, err error) {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		image, err := p.Shown.NodeImage(ctx, name)
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

// notReady returns the names of the nodes that are not ready, nil if they are unknown.
func (p *passes) notReady(ctx context.Context) (map[string]bool, error) {
	nodes, known, err := p.Shown.Nodes(ctx)
	if err != nil || !known {
		return nil, err
	}
	found := map[string]bool{}
	for _, node := range nodes {
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				found[node.Name] = true
			}
		}
	}
	return found, nil
}

// usesCopies reports whether the job has copies of secrets made, or has had some made.
func usesCopies(job *v1beta1.ImagePullJob) bool {
	return len(job.Spec.PullSecrets) > 0 && !isEnded(job) || slices.Contains(job.Finalizers, v1beta1.ProtectionFinalizer)
}

// readSecrets reads the secrets of a job, of which an ended job needs the copies only.
func (p *passes) readSecrets(ctx context.Context, job *v1beta1.ImagePullJob, ended bool) (plan.Secrets, error) {
	s := plan.Secrets{
		Namespace:      p.Namespace,
		NamespaceReady: true,
		Sources:        map[string]*corev1.Secret{},
	}
	if usesCopies(job) {
		s.Lacking = p.Shown.Lacking(ctx)
	}
	if s.Unread = p.WithoutCopies; s.Unread || len(s.Lacking) > 0 {
		return s, nil
	}
	copies := map[types.UID]*corev1.Secret{}
	keys := []string{userKey(job.Namespace + "/" + job.Name)}
	if !ended && job.Namespace != p.Namespace && len(job.Spec.PullSecrets) > 0 {
		s.NamespaceReady = p.secrets.namespaceReady(ctx)
		for _, name := range job.Spec.PullSecrets {
			key := types.NamespacedName{Namespace: job.Namespace, Name: name}
			keys = append(keys, sourceKey(key))
			secret, err := p.secrets.get(ctx, key)
			switch {
			case err == nil:
				s.Sources[name] = secret
			case apierrors.IsForbidden(err):
				s.Forbidden = append(s.Forbidden, name)
			}
			taken, err := p.takenNames(ctx, key)
			if err != nil {
				return s, err
			}
			s.Taken = append(s.Taken, taken...)
		}
	}
	for _, key := range keys {
		found, err := p.Shown.Copies(ctx, key)
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
func (p *passes) goneSecrets(ctx context.Context, job *v1beta1.ImagePullJob, s *plan.Snapshot) (gone []string, err error) {
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
			if secret.Namespace != p.Namespace || seen[secret.Name] {
				continue
			}
			seen[secret.Name] = true
			_, err := p.Shown.Secret(ctx, secret.Name)
			switch {
			case apierrors.IsNotFound(err) && p.secrets.gone(ctx, secret.Name):
				gone = append(gone, secret.Name)
			case client.IgnoreNotFound(err) != nil:
				return nil, fmt.Errorf("read secret %s: %w", secret.Name, err)
			}
		}
	}
	return gone, nil
}

// takenNames returns which names of a copy of the secret others have.
func (p *passes) takenNames(ctx context.Context, source types.NamespacedName) (taken []string, err error) {
	for _, name := range plan.CopyNames(source) {
		other, err := p.Shown.Secret(ctx, name)
		switch {
		case err == nil && !plan.IsCopyOf(other, source):
			taken = append(taken, name)
		case err != nil && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read secret %s: %w", name, err)
		}
	}
	return taken, nil
}

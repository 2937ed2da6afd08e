package podtemplate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// timeout bounds one request: admission has to answer within the webhook's own timeout.
	timeout = 4 * time.Second
	// remembered is how many bytes of answers are cached, and rememberedFor for how long: an upgraded API server may
	// answer differently.
	remembered    = 8 << 20
	rememberedFor = 10 * time.Minute
	// dryRunName is the prefix of the objects' names, as seen in the audit log.
	dryRunName = "flotilla-dry-run-"
)

// UnavailableError means that the cluster could not be asked about a template.
type UnavailableError struct {
	// Namespace is the namespace of the template.
	Namespace string
	// Err is the server's error.
	Err error
}

// Error describes the error and, if possible, its remedy.
func (e *UnavailableError) Error() string {
	if apierrors.IsForbidden(e.Err) {
		return fmt.Sprintf("the pod template cannot be checked: the operator needs permission to create podtemplates in namespace %s: %v", e.Namespace, e.Err)
	}
	return fmt.Sprintf("the check of the pod template by the API server failed, try again: %v", e.Err)
}

// Unwrap returns the server's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Checker asks the cluster about pod templates. It is safe for concurrent use.
type Checker struct {
	client    client.Client
	clock     clock.PassiveClock
	questions *rate.Limiter
	answers   *memory
}

// answer is the server's answer about one template: the template with defaults, as JSON, or why it is invalid.
type answer struct {
	defaulted []byte
	causes    []metav1.StatusCause
	at        time.Time
}

// New returns a checker for a controller: it asks through the client whenever the answer is not cached.
func New(c client.Client, now clock.PassiveClock) *Checker {
	return NewLimited(c, now, rate.NewLimiter(rate.Inf, 0))
}

// NewLimited returns a checker for requests of unknown clients, such as the clients of webhooks: it asks through the
// client no more often than the limiter allows. A caller that would have to wait too long gets an *UnavailableError.
func NewLimited(c client.Client, now clock.PassiveClock, questions *rate.Limiter) *Checker {
	return &Checker{
		client:    c,
		clock:     now,
		questions: questions,
		answers:   newMemory(remembered),
	}
}

// Default returns the template with the cluster's defaults. The volumes are names that claim templates will provide. If
// the namespace is terminating or gone, it returns a copy of the template as it is. For an invalid template the error
// satisfies apierrors.IsInvalid.
func (c *Checker) Default(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, volumes ...string) (*corev1.PodTemplateSpec, error) {
	a, err := c.ask(ctx, namespace, template, volumes)
	if err != nil {
		return nil, err
	}
	if a.causes != nil {
		list := errorsAt(field.NewPath("template"), a.causes)
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodTemplate").GroupKind(), "", list)
	}
	defaulted := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(a.defaulted, defaulted); err != nil {
		return nil, fmt.Errorf("decode the pod template: %w", err)
	}
	return defaulted, nil
}

// Validate returns the errors that the cluster finds in the template, with field paths below at. The volumes are names
// that claim templates will provide. If the namespace is terminating or gone, nothing is wrong.
func (c *Checker) Validate(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, at *field.Path, volumes ...string) (field.ErrorList, error) {
	a, err := c.ask(ctx, namespace, template, volumes)
	if err != nil {
		return nil, err
	}
	return errorsAt(at, a.causes), nil
}

func (c *Checker) ask(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, volumes []string) (answer, error) {
	k, err := keyOf(namespace, template, volumes)
	if err != nil {
		return answer{}, err
	}
	if a, ok := c.answers.get(k); ok && c.clock.Since(a.at) < rememberedFor {
		return a, nil
	}
	a, err := c.dryRun(ctx, namespace, template, volumes)
	if err != nil {
		return answer{}, err
	}
	a.at = c.clock.Now()
	c.answers.add(k, a)
	return a, nil
}

func (c *Checker) dryRun(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, volumes []string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	object := &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: dryRunName},
		Template:   *template.DeepCopy(),
	}
	added := addVolumes(&object.Template.Spec, volumes)
	if err := c.questions.Wait(ctx); err != nil {
		return answer{}, &UnavailableError{Namespace: namespace, Err: fmt.Errorf("too many pod templates are checked at a time: %w", err)}
	}
	err := c.client.Create(ctx, object, client.DryRunAll)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		removeVolumes(&object.Template.Spec, added)
		return asAnswer(&object.Template)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		return asAnswer(template)
	case errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		return answer{causes: causesOf(status.Status())}, nil
	default:
		return answer{}, &UnavailableError{Namespace: namespace, Err: err}
	}
}

func asAnswer(defaulted *corev1.PodTemplateSpec) (answer, error) {
	text, err := json.Marshal(defaulted)
	if err != nil {
		return answer{}, fmt.Errorf("encode the pod template: %w", err)
	}
	return answer{defaulted: text}, nil
}

// addVolumes adds empty volumes with the names that the template does not have, and returns those
// that it added.
func addVolumes(spec *corev1.PodSpec, names []string) []string {
	var added []string
	for _, name := range names {
		if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
			continue
		}
		spec.Volumes = append(spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		})
		added = append(added, name)
	}
	return added
}

func removeVolumes(spec *corev1.PodSpec, names []string) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return slices.Contains(names, v.Name) })
	if len(spec.Volumes) == 0 {
		spec.Volumes = nil
	}
}

func keyOf(namespace string, template *corev1.PodTemplateSpec, volumes []string) (key, error) {
	text, err := json.Marshal([]any{namespace, template, volumes})
	if err != nil {
		return key{}, fmt.Errorf("encode the pod template: %w", err)
	}
	return sha256.Sum256(text), nil
}

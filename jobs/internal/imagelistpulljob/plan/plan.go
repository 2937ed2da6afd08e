package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/completion"
	pullplan "github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// hashLength is the length of the hashes in names of children and in their labels.
const hashLength = 10

// longestName is how much of the name of a job is in the names of its children.
const longestName = 200

// Plan is the result of one pass over a job.
type Plan struct {
	action.Plan
	// Err is why the spec cannot be followed.
	Err error

	status  *v1beta1.ImageListPullJobStatus // nil leaves it as it is
	missing []string                        // images without an ImagePullJob
}

// Status returns the next status, given the failed actions; nil leaves it as it is. Images with a refused ImagePullJob
// are among the failed ones, until it is made.
func (p *Plan) Status(done action.Failures) *v1beta1.ImageListPullJobStatus {
	if p.status == nil || done.ScaleError == "" || len(p.missing) == 0 {
		return p.status
	}
	next := p.status.DeepCopy()
	for _, image := range p.missing {
		next.FailedImageStatuses = append(next.FailedImageStatuses, &v1beta1.FailedImageStatus{
			Name: image, Message: MessageNoJob + done.ScaleError,
		})
	}
	sortFailed(next)
	return next
}

func sortFailed(st *v1beta1.ImageListPullJobStatus) {
	slices.SortFunc(st.FailedImageStatuses, func(a, b *v1beta1.FailedImageStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// Compute makes the plan of one pass. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := Plan{Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}}
	switch {
	case s.Job.DeletionTimestamp != nil:
	case s.Job.Status.CompletionTime != nil:
		completion.Expire(&p.Plan, s.Job, s.Job.Status.CompletionTime, s.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished)
		if completion.EditedLate(&p.Plan, s.Job, s.Job.Status.ObservedGeneration) {
			p.status = s.Job.Status.DeepCopy()
			p.status.ObservedGeneration = s.Job.Generation
		}
	default:
		run(s, &p)
	}
	p.Plan = action.Admit(p.Plan)
	return p
}

// run makes the children that are missing and deletes those that are not wanted.
func run(s Snapshot, p *Plan) {
	template := childTemplate(s.Job)
	hash, err := hashOf(template)
	if err != nil {
		p.Err = err
		return
	}
	byImage := map[string]*v1beta1.ImagePullJob{}
	var drop []action.Action
	for _, child := range inOrder(s.Children) {
		switch {
		case child.DeletionTimestamp != nil:
		case byImage[child.Spec.Image] != nil:
			drop = append(drop, remove(child, "another ImagePullJob pulls the image"))
		case !slices.Contains(s.Job.Spec.Images, child.Spec.Image):
			drop = append(drop, remove(child, "the image was removed from spec.images"))
		case !follows(child, &template, hash):
			drop = append(drop, remove(child, "the spec of the job has changed"))
		default:
			byImage[child.Spec.Image] = child
		}
	}
	var missing []action.Action
	for _, image := range s.Job.Spec.Images {
		if byImage[image] == nil {
			missing = append(missing, create(s.Job, image, template, hash))
			p.missing = append(p.missing, image)
		}
	}
	p.Add(action.Step{Name: "delete", Actions: drop})
	p.Add(action.Step{Name: "create", Actions: missing, SlowStart: true})
	p.Add(action.Step{
		Name:     "label",
		Actions:  labels(s.Job, byImage, hash),
		Optional: true,
	})
	p.status = status(s, byImage)
}

// labels returns the writes that put the hash of the template on the job, and on children that follow it under another
// hash. A child that OpenKruise made goes with the job from then on, too: one that went by itself would be made again.
func labels(job *v1beta1.ImageListPullJob, byImage map[string]*v1beta1.ImagePullJob, hash string) []action.Action {
	var actions []action.Action
	add := func(o action.Object, verb action.Verb, body map[string]any) {
		if o.GetLabels()[contract.RevisionLabel] != hash {
			body["metadata"] = map[string]any{"labels": map[string]string{contract.RevisionLabel: hash}}
		}
		if len(body) > 0 {
			actions = append(actions, action.Action{
				Verb:    verb,
				Object:  o,
				Reason:  "Label",
				Message: "of the template",
				Patches: []action.Patch{{Type: types.MergePatchType, AnyVersion: true, Body: body}},
			})
		}
	}
	add(job, action.PatchMetadata, map[string]any{})
	for _, image := range job.Spec.Images {
		switch child := byImage[image]; {
		case child == nil:
		case child.Spec.CompletionPolicy.TTLSecondsAfterFinished != nil:
			add(child, action.PatchSpec, map[string]any{"spec": map[string]any{"completionPolicy": map[string]any{"ttlSecondsAfterFinished": nil}}})
		default:
			add(child, action.PatchMetadata, map[string]any{})
		}
	}
	return actions
}

func inOrder(children []*v1beta1.ImagePullJob) []*v1beta1.ImagePullJob {
	sorted := slices.Clone(children)
	slices.SortFunc(sorted, func(a, b *v1beta1.ImagePullJob) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// childTemplate returns how children pull. They go with their parent and not before: one that went by itself would be
// made again.
func childTemplate(job *v1beta1.ImageListPullJob) v1beta1.ImagePullJobTemplate {
	template := *job.Spec.ImagePullJobTemplate.DeepCopy()
	template.CompletionPolicy.TTLSecondsAfterFinished = nil
	return template
}

// hashOf returns the same text for the same template in every release: the hash of its JSON.
func hashOf(value any) (string, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("write the template of a job: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:hashLength], nil
}

// follows reports whether a child pulls according to the job. A child made by OpenKruise has another hash and the time
// to live of its parent, and is compared itself; fields that admission filled in are no difference.
func follows(child *v1beta1.ImagePullJob, template *v1beta1.ImagePullJobTemplate, hash string) bool {
	if child.Labels[contract.RevisionLabel] == hash {
		return true
	}
	return equality.Semantic.DeepEqual(defaulted(child.Spec.ImagePullJobTemplate), defaulted(*template))
}

func defaulted(t v1beta1.ImagePullJobTemplate) v1beta1.ImagePullJobTemplate {
	out := *t.DeepCopy()
	out.CompletionPolicy.TTLSecondsAfterFinished = nil
	pullplan.DefaultTemplate(&out)
	out.ImagePullPolicy = cmp.Or(out.ImagePullPolicy, v1beta1.PullIfNotPresent)
	return out
}

func remove(child *v1beta1.ImagePullJob, why string) action.Action {
	return action.Action{
		Verb:    action.Delete,
		Object:  child,
		Reason:  "Unwanted",
		Message: why,
		Event: &action.Event{
			Succeeded: EventDeleted,
			Note:      "deleted ImagePullJob " + child.Name + ": " + why,
			Failed:    EventDeleteFailed,
		},
	}
}

// create returns the creation of a child under a name that follows from its image and template, so that it is made
// once.
func create(job *v1beta1.ImageListPullJob, image string, template v1beta1.ImagePullJobTemplate, hash string) action.Action {
	suffix, _ := hashOf([]string{image, hash}) // texts have a JSON
	base := job.Name
	if len(base) > longestName {
		base = strings.TrimRight(base[:longestName], "-.")
	}
	name := base + "-" + suffix
	return action.Action{
		Verb:    action.Create,
		Reason:  "Pull",
		Message: "image " + image,
		Event: &action.Event{
			Succeeded: EventCreated,
			Note:      "created ImagePullJob " + name + " for image " + image,
			Failed:    EventCreateFailed,
		},
		Object: &v1beta1.ImagePullJob{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:       job.Namespace,
				Name:            name,
				Labels:          map[string]string{contract.RevisionLabel: hash},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, v1beta1.GroupVersion.WithKind(v1beta1.ImageListPullJobKind))},
			},
			Spec: v1beta1.ImagePullJobSpec{Image: image, ImagePullJobTemplate: template},
		},
	}
}

// status returns the next status.
func status(s Snapshot, byImage map[string]*v1beta1.ImagePullJob) *v1beta1.ImageListPullJobStatus {
	st := &v1beta1.ImageListPullJobStatus{
		StartTime:          s.Job.Status.StartTime,
		Desired:            int32(len(s.Job.Spec.Images)),
		ObservedGeneration: s.Job.Generation,
	}
	if st.StartTime == nil {
		st.StartTime = new(metav1.NewTime(s.Now))
	}
	for _, child := range byImage {
		told := &child.Status
		if told.Active > 0 {
			st.Active++
		}
		if told.StartTime != nil && told.Desired == told.Succeeded+told.Failed {
			st.Completed++
		}
		if told.StartTime != nil && told.Desired == told.Succeeded {
			st.Succeeded++
		}
		if told.Failed > 0 {
			st.FailedImageStatuses = append(st.FailedImageStatuses, &v1beta1.FailedImageStatus{
				ImagePullJob: child.Name,
				Name:         child.Spec.Image,
				Message:      fmt.Sprintf("%d nodes failed; see the status of ImagePullJob %s", told.Failed, child.Name),
			})
		}
	}
	sortFailed(st)
	if s.Job.Spec.CompletionPolicy.Type != v1beta1.CompletionNever && st.Completed == st.Desired && ended(byImage) {
		st.CompletionTime = new(metav1.NewTime(s.Now))
	}
	return st
}

// ended reports whether all children have completed: a child with nodes that have all ended may still see a new node.
func ended(byImage map[string]*v1beta1.ImagePullJob) bool {
	for _, child := range byImage {
		if child.Status.CompletionTime == nil {
			return false
		}
	}
	return true
}

package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	jobs "github.com/flotilla-project/flotilla/jobs/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/agents"
)

const (
	// imageEnds is the image of containers that end at once, with success.
	imageEnds = "ends:v1"
	// pullImage is pulled, under this name and tag.
	pullImage = "nginx"
	// leastImages is how many NodeImages there are, or as many as pods of Options where these are more.
	leastImages = 2000
	// pullsAtATime is the parallelism of the ImagePullJob.
	pullsAtATime = 100
	// slow is the time between two looks at something that costs the server a list of all objects.
	slow = time.Second
)

func addJobs(scheme *runtime.Scheme) error {
	if err := jobs.AddToScheme(scheme); err != nil {
		return err
	}
	return nodeimage.AddToScheme(scheme)
}

// jobParts are what is measured of the kinds of jobs.
func (b *bench) jobParts() []part {
	return []part{
		{name: "built-in", run: b.builtInCrons, uncounted: true}, {name: "broadcast", run: b.broadcast}, {name: "pull", run: b.pull},
		{name: "cron", run: b.crons, uncounted: true},
	}
}

// cost measures what do costs until some time after it has ended.
func (b *bench) cost(ctx context.Context, row Row, who controller, do func() (began time.Time, err error)) (Row, error) {
	b.tell("%s", row.Load)
	row.Controller = who.name
	if err := b.audit.Skip(); err != nil {
		return row, err
	}
	meter, err := startMeter(ctx, b.processes())
	if err != nil {
		return row, err
	}
	began, err := do()
	if err != nil {
		return row, fmt.Errorf("%s: %w", row.Load, err)
	}
	row.Done = time.Since(began).Seconds()
	time.Sleep(settling)
	if row.Costs, err = meter.cost(); err != nil {
		return row, err
	}
	err = b.count(&row, began, who)
	return row, err
}

// accepted creates an object. The operator's webhooks answer a moment after it is ready, and may take too long on a busy
// machine, when the object may be there nevertheless.
func (b *bench) accepted(ctx context.Context, o client.Object) error {
	var last error
	err := until(ctx, "the object to be accepted", func() (bool, error) {
		last = b.client.Create(ctx, o)
		return last == nil || apierrors.IsAlreadyExists(last), nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// broadcast measures a BroadcastJob on all nodes, all at once and a tenth of them at a time.
func (b *bench) broadcast(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, way := range []struct {
		load        string
		parallelism *intstr.IntOrString
	}{{"BroadcastJob", nil}, {"BroadcastJob, parallelism 10%", new(intstr.FromString("10%"))}} {
		space, err := b.namespace(ctx)
		if err != nil {
			return rows, err
		}
		job := &jobs.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}}
		job.Spec.Parallelism = way.parallelism
		job.Spec.Template.Spec = podSpec(imageEnds)
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		pods := b.watch(ctx, space)
		row, err := b.cost(ctx, Row{Load: way.load, Pods: b.Pods}, b.ofOperator("broadcastjob"), func() (time.Time, error) {
			began := time.Now()
			if err := b.accepted(ctx, job); err != nil {
				return began, err
			}
			return began, b.reported(ctx, job, func() bool {
				return job.Status.Phase == jobs.PhaseCompleted && int(job.Status.Succeeded) == b.Pods
			})
		})
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
		if err := b.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return rows, fmt.Errorf("delete the job: %w", err)
		}
		if err := until(ctx, "the end of the pods", func() (bool, error) { return len(pods.List()) == 0, nil }); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// pull measures an ImagePullJob on NodeImages of nodes that pull in no time. The nodes need not exist otherwise.
func (b *bench) pull(ctx context.Context) ([]Row, error) {
	images := cmp.Or(b.images, max(leastImages, b.Pods))
	space, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	b.tell("making %d NodeImages", images)
	err = forEach(ctx, images, func(ctx context.Context, i int) error {
		return b.client.Create(ctx, &nodeimage.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: podName(i)}})
	})
	if err != nil {
		return nil, fmt.Errorf("create a NodeImage: %w", err)
	}
	defer func() {
		_ = b.client.DeleteAllOf(context.WithoutCancel(ctx), &nodeimage.NodeImage{}) // the cluster goes after the last round
	}()
	stop, err := agents.Play(ctx, b.client, &nodeimage.NodeImageList{}, agents.Pull)
	if err != nil {
		return nil, err
	}
	defer stop()
	job := &jobs.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}}
	job.Spec.Image = pullImage
	job.Spec.Parallelism = new(intstr.FromInt32(pullsAtATime))
	row := Row{
		Load: fmt.Sprintf("ImagePullJob, parallelism %d", pullsAtATime),
		Pods: images,
		Of:   "nodeimages",
	}
	row, err = b.cost(ctx, row, b.ofOperator("imagepulljob"), func() (time.Time, error) {
		began := time.Now()
		if err := b.accepted(ctx, job); err != nil {
			return began, err
		}
		return began, b.reported(ctx, job, func() bool {
			return job.Status.CompletionTime != nil && int(job.Status.Succeeded) == images
		})
	})
	if err != nil {
		err = fmt.Errorf("%w; the job says: %d of %d, %s", err, job.Status.Succeeded, job.Status.Desired, job.Status.Message)
	}
	return []Row{row}, err
}

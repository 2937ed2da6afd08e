package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Without the right to copy secrets a job with pull secrets waits and says why; one without goes on.
func TestALackingRightConcernsJobsWithSecrets(t *testing.T) {
	lacking := Secrets{Namespace: "config", NamespaceReady: true, Lacking: []string{"create", "delete"}}
	secret := job(func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"registry"} })
	p := compute(t, Snapshot{Job: secret, Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: lacking, Now: now})
	assert.Empty(t, p.Steps)
	assert.Equal(t, MessageProgress+"0.0%; "+MessageSecretsForbidden+
		": the operator has no permission to create, delete secrets in namespace config; apply Role daemon-pull-secrets of feature daemon", p.status.Message)
	assert.Equal(t, EventSecretsForbidden, p.Notices[0].Reason)
	assert.Equal(t, SecretRecheck, p.RequeueAfter)
	secret.Status = *p.status
	assert.Empty(t, compute(t, Snapshot{Job: secret, Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: lacking, Now: now}).Notices, "once")

	p = compute(t, Snapshot{Job: job(), Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: lacking, Now: now})
	assert.Len(t, p.Steps, 1)
	unread := Secrets{Namespace: "config", NamespaceReady: true, Unread: true}
	p = compute(t, Snapshot{Job: secret, Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: unread, Now: now})
	assert.Empty(t, p.Steps, "the copies are not known yet")
	assert.Equal(t, MessageProgress+"0.0%", p.status.Message)
}

// A job waits while a pull secret of it may not be read, and says which one and what grants that.
func TestASecretThatMayNotBeReadIsNamed(t *testing.T) {
	secret := job(func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"registry"} })
	s := Secrets{Namespace: "config", NamespaceReady: true, Forbidden: []string{"registry"}}
	p := compute(t, Snapshot{Job: secret, Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: s, Now: now})
	assert.Empty(t, p.Steps)
	assert.Equal(t, MessageProgress+"0.0%; "+MessageSecretsForbidden+
		": the operator has no permission to get secret registry; install component pullsecrets of feature jobs", p.status.Message)
	assert.Equal(t, EventSecretsForbidden, p.Notices[0].Reason)
	assert.Equal(t, SecretRecheck, p.RequeueAfter)
}

// Without that right a completed job keeps its finalizer, since its copies are still there, and a deleted one does not:
// it would hold its namespace.
func TestALackingRightHoldsNoNamespace(t *testing.T) {
	letsGo := func(deleted bool, s Secrets) bool {
		j := job(protected, ended(0))
		if deleted {
			j.DeletionTimestamp = new(metav1.NewTime(now))
		}
		p := compute(t, Snapshot{Job: j, Secrets: s, Now: now})
		return len(p.Steps) > 0
	}
	assert.True(t, letsGo(false, Secrets{}))
	for _, s := range []Secrets{{Lacking: []string{"delete"}}, {Unread: true}} {
		assert.False(t, letsGo(false, s))
		assert.True(t, letsGo(true, s))
	}
}

// While nothing is pulled the copies are not known, either.
func TestWithoutNodeImagesACompletedJobKeepsItsFinalizer(t *testing.T) {
	j := job(protected, ended(0))
	p := Waiting(j, now, nil, NotInstalled)
	assert.Empty(t, p.Steps)
	j.DeletionTimestamp = new(metav1.NewTime(now))
	p = Waiting(j, now, nil, NotInstalled)
	assert.Len(t, p.Steps, 1, "it would hold its namespace")
}

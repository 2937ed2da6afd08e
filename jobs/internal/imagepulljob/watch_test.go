package imagepulljob

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// given returns a NodeImage that is asked for tags, and tells phases of them, as in "nginx:1=Pulling".
func given(entries ...string) *nodeimage.NodeImage {
	o := &nodeimage.NodeImage{}
	o.Spec.Images, o.Status.ImageStatuses = map[string]nodeimage.ImageSpec{}, map[string]nodeimage.ImageStatus{}
	for _, entry := range entries {
		image, phase, _ := strings.Cut(entry, "=")
		name, tag, _ := strings.Cut(image, ":")
		spec, status := o.Spec.Images[name], o.Status.ImageStatuses[name]
		spec.Tags = append(spec.Tags, nodeimage.ImageTagSpec{Tag: tag})
		if phase != "" {
			status.Tags = append(status.Tags, nodeimage.ImageTagStatus{Tag: tag, Phase: nodeimage.ImagePullPhase(phase)})
			o.Status.ImageStatuses[name] = status
		}
		o.Spec.Images[name] = spec
	}
	return o
}

// What a node tells of one tag is no matter of the jobs for others.
func TestJobsAreWokenForTheirTags(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *nodeimage.NodeImage
		want          string
	}{
		"nothing":            {given("nginx:1=Pulling"), given("nginx:1=Pulling"), ""},
		"a tag moves on":     {given("nginx:1=Pulling", "nginx:2=Pulling"), given("nginx:1=Succeeded", "nginx:2=Pulling"), "nginx:1"},
		"two tags move on":   {given("nginx:1", "redis:2=Pulling"), given("nginx:1=Pulling", "redis:2=Failed"), "nginx:1 redis:2"},
		"a tag is told last": {given("nginx:1=Failed"), given("nginx:1"), "nginx:1"},
		"a tag is asked for": {given("nginx:1=Pulling", "redis:2"), given("nginx:1=Failed", "nginx:2", "redis:2"), "nginx"},
		"an image goes":      {given("nginx:1=Failed"), given(), "nginx"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, strings.Join(slices.Sorted(slices.Values(changes(test.before, test.after))), " "))
		})
	}
	job := &v1beta1.ImagePullJob{}
	job.Spec.Image = "docker.io/library/nginx"
	assert.Subset(t, images(job), []string{"nginx", "nginx:latest"})
}

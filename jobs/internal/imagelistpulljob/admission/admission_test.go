package admission

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	pullplan "github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

func TestImagesAreValidated(t *testing.T) {
	var many []string
	for i := range v1beta1.MaxImages + 1 {
		many = append(many, fmt.Sprintf("image%d", i))
	}
	for name, test := range map[string]struct {
		images []string
		want   string
	}{
		"two":       {[]string{"a", "b"}, ""},
		"none":      {nil, "spec.images: Required value"},
		"too many":  {many, "spec.images: Too many"},
		"twice":     {[]string{"a", "a"}, `spec.images[1]: Duplicate value: "a"`},
		"no image":  {[]string{"a", "B"}, `spec.images[1]: Invalid value: "B"`},
		"an empty":  {[]string{""}, "spec.images[0]: Required value"},
		"as a list": {many[:v1beta1.MaxImages], ""},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateSpec(&v1beta1.ImageListPullJobSpec{Images: test.images}, field.NewPath("spec"))
			if test.want == "" {
				assert.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			assert.Contains(t, errs[0].Error(), test.want)
		})
	}
}

// What older releases have stored lacks fields that are set today whenever it is written.
func TestDefaultsAreNoChange(t *testing.T) {
	stored := &v1beta1.ImageListPullJob{}
	stored.Spec.Images, stored.Spec.Parallelism = []string{"a"}, new(intstr.FromString("10%"))
	labelled := stored.DeepCopy()
	pullplan.DefaultTemplate(&labelled.Spec.ImagePullJobTemplate)
	labelled.Labels = map[string]string{"a": "b"}
	assert.Empty(t, Validate(labelled, stored))
	labelled.Spec.Images = []string{"b"}
	assert.Empty(t, Validate(labelled, stored), "what is stored already prevents no other change")
	labelled.Spec.Images = []string{"B"}
	assert.Len(t, Validate(labelled, stored), 1)
}

func TestAnEditAfterTheEndIsWarnedOf(t *testing.T) {
	old := &v1beta1.ImageListPullJob{}
	old.Spec.Images = []string{"a"}
	more, ttl := old.DeepCopy(), old.DeepCopy()
	more.Spec.Images = []string{"a", "b"}
	ttl.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(1))
	pullplan.DefaultTemplate(&ttl.Spec.ImagePullJobTemplate)
	assert.Empty(t, tooLate(more, nil))
	assert.Empty(t, tooLate(more, old))
	old.Status.CompletionTime = new(metav1.Now())
	assert.Len(t, tooLate(more, old), 1)
	assert.Empty(t, tooLate(ttl, old), "it is followed")
}

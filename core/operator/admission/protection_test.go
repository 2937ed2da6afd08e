package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDeletionIsRefusedWhereTheLabelAsks(t *testing.T) {
	for name, c := range map[string]struct {
		value    string
		replicas int32
		leaving  bool
		want     string
	}{
		"no label":                   {"", 3, false, ""},
		"another value":              {"Sometimes", 3, false, ""},
		"always":                     {"Always", 0, false, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"},
		"cascading":                  {"Cascading", 3, false, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and replicas 3>0"},
		"cascading without replicas": {"Cascading", 0, false, ""},
		"leaving already":            {"Always", 3, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &metav1.ObjectMeta{Name: "web", Labels: map[string]string{"policy.kruise.io/delete-protection": c.value}}
			if c.leaving {
				o.DeletionTimestamp = &metav1.Time{}
			}
			err := RefuseDeletion(schema.GroupResource{Group: "g", Resource: "webs"}, o, c.replicas)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			assert.True(t, apierrors.IsForbidden(err))
		})
	}
}

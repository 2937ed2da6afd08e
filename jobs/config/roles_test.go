package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/jobs/config"
)

// Whoever may edit a namespace may not fill the disks of all nodes for that reason.
func TestImagePullsAreNoPartOfEdit(t *testing.T) {
	for _, role := range testenv.ManifestsOf[rbacv1.ClusterRole](t, config.Files, "rbac/user_roles.yaml", "ClusterRole") {
		_, edit := role.Labels["rbac.authorization.k8s.io/aggregate-to-edit"]
		_, admin := role.Labels["rbac.authorization.k8s.io/aggregate-to-admin"]
		want := strings.HasSuffix(role.Name, "-editor-role") && !strings.HasPrefix(role.Name, "image")
		assert.Equal(t, want, edit, role.Name)
		assert.Equal(t, want, admin, role.Name)
	}
}

package agentreport

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// The process has the value of the last variable of a name.
func TestAHiddenVariableIsNotRead(t *testing.T) {
	c := &corev1.Container{Env: []corev1.EnvVar{
		{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['a']"}}},
		{Name: "A", Value: "fixed"},
	}}
	assert.False(t, ReadsMetadata(c))
	assert.Equal(t, EnvHash(&corev1.Container{}, nil), EnvHash(c, nil))
	c.Env[0], c.Env[1] = c.Env[1], c.Env[0]
	assert.True(t, ReadsMetadata(c))
}

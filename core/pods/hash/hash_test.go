package hash

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// fnv1a is the published algorithm, written out so that the test does not rest on the library used.
func fnv1a(text string) uint32 {
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return h
}

func TestObjectHashesTheDeepPrint(t *testing.T) {
	one := int32(1)
	cases := []struct {
		name  string
		value any
		print string
	}{
		{"a number with its type", 5, "(int)5"},
		{"text with its type", "a", "(string)a"},
		{"a pointer as what it points to", &one, "(*int32)1"},
		{"bytes as numbers", []byte("{}"), "([]uint8)[123 125]"},
		{"map keys sorted", map[string]int{"b": 2, "a": 1}, "(map[string]int)map[a:1 b:2]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, fnv1a(c.print), Object(c.value), "print of the value differs from %q", c.print)
		})
	}
}

func TestObjectIgnoresWhereTheValueIsStored(t *testing.T) {
	env := func(path string) []corev1.EnvVar {
		source := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
		return []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", ValueFrom: source}}
	}
	name := Object(env("metadata.name"))
	assert.Equal(t, name, Object(env("metadata.name")))
	assert.NotEqual(t, name, Object(env("metadata.uid")))
}

package conversion

import (
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// to returns versions g/v1 and g/v2, of which only the way to g/v2 is known.
func to(hub func(Object) (Object, error)) Versions {
	return Versions{Hub: "g/v2", Spoke: "g/v1", ToHub: hub, FromHub: func(Object) (Object, error) { return nil, errors.New("not to be called") }}
}

func TestConvertLeavesWhatIsNotConverted(t *testing.T) {
	raw := []byte(`{"apiVersion":"g/v1","kind":"K","spec":{"cpu":0.5,"count":9007199254740993,"off":false}}`)
	out, err := to(func(src Object) (Object, error) { return WithMembers(src, nil, "spec2"), nil }).Convert(raw, "g/v2")
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"g/v2","kind":"K","spec":{"cpu":0.5,"count":9007199254740993,"off":false}}`, string(out))
	assert.Contains(t, string(out), "9007199254740993", "integers keep all their digits")
}

func TestConvertGoesBack(t *testing.T) {
	back := Versions{Hub: "g/v2", Spoke: "g/v1", FromHub: func(Object) (Object, error) { return Object{"back": true}, nil }}
	out, err := back.Convert([]byte(`{"apiVersion":"g/v2"}`), "g/v1")
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"g/v1","back":true}`, string(out))
}

func TestConvertReturnsTheSameVersionByteByByte(t *testing.T) {
	raw := []byte(`{ "apiVersion": "g/v1",  "b": 1, "a": 2 }`)
	out, err := to(nil).Convert(raw, "g/v1")
	require.NoError(t, err)
	assert.Equal(t, string(raw), string(out))
}

func TestConvertTellsWhatGoesWrong(t *testing.T) {
	_, err := to(nil).Convert([]byte(`{`), "g/v1")
	require.ErrorContains(t, err, "decode: ")
	_, err = to(nil).Convert([]byte(`{"apiVersion":"g/v3"}`), "g/v1")
	require.EqualError(t, err, "unsupported version: v3 to v1")
	_, err = to(nil).Convert([]byte(`{"apiVersion":"g/v1"}`), "h/v2")
	require.EqualError(t, err, "unsupported version: v1 to v2")
	_, err = to(nil).Convert([]byte(`{"apiVersion":"g/v2"}`), "g/v1")
	require.EqualError(t, err, "not to be called")
}

func TestThroughPassesTheTypes(t *testing.T) {
	type one struct{ Number int64 }
	type two struct{ Twice int64 }
	out, err := ViaTypes(Object{"Number": int64(3)}, func(src *one, dst *two) error { dst.Twice = 2 * src.Number; return nil })
	require.NoError(t, err)
	assert.Equal(t, Object{"Twice": int64(6)}, out)
	_, err = ViaTypes(Object{"Number": "x"}, func(*one, *two) error { return nil })
	require.ErrorContains(t, err, "decode: ")
	_, err = ViaTypes(nil, func(*one, *two) error { return errors.New("no") })
	require.EqualError(t, err, "no")
}

func TestTypedPassesTheJSON(t *testing.T) {
	type one struct{ Number int64 }
	type two struct{ Twice int64 }
	var dst two
	require.NoError(t, ViaJSON(&one{3}, &dst, func(o Object) (Object, error) { return Object{"Twice": o["Number"].(int64) * 2}, nil }))
	assert.Equal(t, two{6}, dst)
	require.EqualError(t, ViaJSON(&one{3}, &dst, func(Object) (Object, error) { return nil, errors.New("no") }), "no")
	require.ErrorContains(t, ViaJSON(&one{3}, &dst, func(Object) (Object, error) { return Object{"Twice": "x"}, nil }), "decode: ")
}

func TestWithTakesMembersOfAnother(t *testing.T) {
	base := Object{"a": 1, "b": 2, "c": 3}
	assert.Equal(t, Object{"a": 1, "b": 9}, WithMembers(base, Object{"b": 9, "d": 4}, "b", "c"))
	assert.Equal(t, Object{"a": 1, "b": 2, "c": 3}, base, "the base was changed")
	assert.Equal(t, Object{}, WithMembers(nil, nil, "a"))
}

func TestMemberFollowsThePath(t *testing.T) {
	tree := Object{"spec": Object{"strategy": Object{"x": 1}, "name": "n"}}
	assert.Equal(t, Object{"x": 1}, Member(tree, "spec", "strategy"))
	assert.Nil(t, Member(tree, "spec", "name"))
	assert.Nil(t, Member(tree, "status", "x"))
}

func TestAnnotationsCarryWhatCannotBeSaid(t *testing.T) {
	meta := metav1.ObjectMeta{}
	require.NoError(t, PutAnnotation(&meta, "note", map[string]int{"a": 1}))
	assert.Equal(t, map[string]string{"note": `{"a":1}`}, meta.Annotations)
	var value map[string]int
	TakeAnnotation(&meta, "note", &value)
	assert.Equal(t, map[string]int{"a": 1}, value)
	assert.Empty(t, meta.Annotations)
	TakeAnnotation(&meta, "note", &value)
	assert.Equal(t, map[string]int{"a": 1}, value, "an absent one says nothing")

	meta.Annotations = map[string]string{"note": "{"}
	TakeAnnotation(&meta, "note", &value)
	assert.Equal(t, map[string]int{"a": 1}, value, "neither does one that cannot be read")
	assert.Empty(t, meta.Annotations)
	require.ErrorContains(t, PutAnnotation(&meta, "note", func() {}), "write annotation note: ")
}

func TestAnnotationsOfDecodedObjects(t *testing.T) {
	note, stored := "note", Object{"metadata": Object{"name": "web", "annotations": Object{"b": "c"}}}
	object := maps.Clone(stored)
	require.NoError(t, PutAnnotationIn(object, note, Object{"a": 1}))
	assert.Equal(t, Object{"metadata": Object{"name": "web", "annotations": Object{"b": "c", "note": `{"a":1}`}}}, object)
	text, ok := AnnotationIn(object, note)
	assert.Equal(t, `{"a":1}`, text)
	assert.True(t, ok)
	RemoveAnnotationFrom(object, note)
	assert.Equal(t, stored, object)
	assert.Equal(t, Object{"metadata": Object{"name": "web", "annotations": Object{"b": "c"}}}, stored, "what was given is changed")

	bare := Object{}
	require.NoError(t, PutAnnotationIn(bare, note, nil))
	RemoveAnnotationFrom(bare, note)
	assert.Equal(t, Object{"metadata": Object{}}, bare)
	_, ok = AnnotationIn(bare, note)
	assert.False(t, ok)
	require.ErrorContains(t, PutAnnotationIn(bare, note, func() {}), "write annotation note: ")
}

func TestLossesAreNamedUnlessTheyAreAccepted(t *testing.T) {
	assert.Equal(t, `v1alpha1 cannot express field: keep annotation note, use v1beta1, or set annotation apps.kruise.io/accept-v1alpha1-loss to "true"`,
		Loss("field", "note"))
	for text, want := range map[string]bool{"true": true, "false": false, "": false} {
		assert.Equal(t, want, AcceptsLoss(&metav1.ObjectMeta{Annotations: map[string]string{AcceptLossAnnotation: text}}))
	}
}

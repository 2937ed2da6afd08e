package fuzz

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Conversion converts objects of one kind between two versions.
type Conversion struct {
	Convert Convert
	// CRD has the schemas of both versions.
	CRD CRD
	// Settles is true if the way there and back writes defaults out: an object is compared after its first such way.
	Settles bool
	// Normal, unless nil, gives an object the form in which equal objects are compared.
	Normal func(Object)
}

// Run adds the seeds of the kind and runs the target. It checks objects that the schema of the CRD accepts:
//   - an object is converted, and the schema of the older version accepts the result;
//   - an object of the newest version, which is stored, comes back from the older one as it was, unless Settles is true;
//   - an object of the older version comes back as it was, or in another form that stays the same from then on.
func (c Conversion) Run(f *testing.F, seeds ...[]byte) {
	f.Helper()
	versions := c.CRD.versions()
	require.Len(f, versions, 2)
	add(f, c.CRD.inVersions(f, c.Convert, seeds))
	f.Fuzz(func(t *testing.T, raw, script []byte) {
		object, ok := decode(raw)
		if !ok {
			for _, version := range versions {
				_, _ = c.Convert(raw, version) // without a panic
			}
			return
		}
		if object = edit(object, c.CRD.schema(object), script); c.CRD.schema(object) == nil {
			_, _ = c.Convert(encode(t, object), versions[0])
			return
		}
		prune(object, c.CRD.schema(object))
		older, newest := versions[0], versions[1]
		switch object["apiVersion"] {
		case newest:
			back := c.check(t, object, older, newest)
			if back != nil && c.Settles {
				object = back
				back = c.check(t, back, older, newest)
			}
			if back != nil {
				c.assertSame(t, object, back)
			}
		case older:
			if back := c.check(t, object, newest, older); back != nil {
				c.assertSame(t, back, c.check(t, back, newest, older))
			}
		}
	})
}

// check returns the object after its way to a version and back, nil for an object that the schema refuses.
func (c Conversion) check(t *testing.T, object Object, to, from string) Object {
	t.Helper()
	raw, err := c.Convert(encode(t, object), to)
	// Schemas accept an object without a spec, and webhooks refuse it.
	if _, hasSpec := object["spec"].(Object); !hasSpec || !c.CRD.Accepts(object) {
		return nil
	}
	require.NoError(t, err)
	converted, ok := decode(raw)
	require.True(t, ok, "the result is no object: %s", raw)
	require.Equal(t, to, converted["apiVersion"])
	if to < from { // the rules of the newest version may be stricter
		require.True(t, c.CRD.Accepts(converted), "the schema of %s refuses the result: %s", to, raw)
	}
	raw, err = c.Convert(raw, from)
	require.NoError(t, err)
	back, ok := decode(raw)
	require.True(t, ok, "the result is no object: %s", raw)
	return back
}

// WithoutZeros removes the members that a conversion by Go types leaves out. It is for Conversion.Normal.
func WithoutZeros(object Object) {
	for name, value := range object {
		within, isObject := value.(Object)
		if isObject {
			WithoutZeros(within)
		}
		list, isList := value.([]any)
		for _, item := range list {
			if within, ok := item.(Object); ok {
				WithoutZeros(within)
			}
		}
		if isObject && len(within) == 0 || isList && len(list) == 0 || value == nil || value == "" || value == false || value == int64(0) {
			delete(object, name)
		}
	}
}

// withoutEmpty removes members without content.
func withoutEmpty(object Object) {
	for name, value := range object {
		within, isObject := value.(Object)
		if isObject {
			withoutEmpty(within)
		}
		if isObject && len(within) == 0 || value == nil {
			delete(object, name)
		}
	}
}

func (c Conversion) assertSame(t *testing.T, object, back Object) {
	t.Helper()
	for _, one := range []Object{object, back} {
		if meta, ok := one["metadata"].(Object); ok {
			WithoutZeros(meta) // such as annotations without the last one
		}
		if c.Normal != nil {
			c.Normal(one)
		}
		withoutEmpty(one)
	}
	assert.JSONEq(t, string(encode(t, object)), string(encode(t, back)), "the way to the other version and back")
}

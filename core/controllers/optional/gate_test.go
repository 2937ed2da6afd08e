package optional_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

func TestAGateOpensForWhatIsServedAndMayBeRead(t *testing.T) {
	silent := errors.New("no answer")
	some := map[string][]string{"g.io/v1": {"widgets"}}
	for name, c := range map[string]struct {
		served          served
		allows          map[string]bool
		unknown         error
		open, forbidden bool
		err             error
	}{
		"neither":              {},
		"nobody says":          {served: served{err: silent}, err: silent},
		"served":               {served: served{resources: some}, forbidden: true},
		"to be listed only":    {served: served{resources: some}, allows: map[string]bool{"list": true}, forbidden: true},
		"both":                 {served: served{resources: some}, allows: map[string]bool{"list": true, "watch": true}, open: true},
		"nobody says who may":  {served: served{resources: some}, unknown: silent, open: true},
		"rights without kinds": {allows: map[string]bool{"list": true, "watch": true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &optional.Gate{
				Kind:      optional.Kind{GroupKind: schema.GroupKind{Group: "g.io", Kind: "Widget"}, Resource: "widgets", Versions: []string{"v1"}},
				Discovery: c.served, Client: &reviewer{allows: c.allows, err: c.unknown},
			}
			open, err := g.Open(t.Context())
			require.ErrorIs(t, err, c.err)
			assert.Equal(t, []bool{c.open, c.forbidden}, []bool{open, g.Forbidden()})
			assert.Equal(t, c.served.resources != nil, g.Version() == "v1", g.Version())
		})
	}
}

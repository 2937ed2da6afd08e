package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release"
)

func TestPlan(t *testing.T) {
	changed := []string{"file.go"}
	fix, feature, breaking := release.Note{Kind: release.Fix, Text: "less"}, release.Note{Kind: release.Feature, Text: "more"},
		release.Note{Kind: release.Breaking, Text: "other"}
	tests := []struct {
		name    string
		modules []release.Module
		want    []release.Release
		err     string
	}{
		{name: "nothing has changed", modules: []release.Module{{Folder: "core", Version: "v0.1.0"}}},
		{
			name: "notes without a change are of the next release", modules: []release.Module{{Folder: "core", Version: "v0.1.0", Notes: []release.Note{fix}}},
		},
		{
			name: "the first release",
			modules: []release.Module{
				{Folder: "budget", Requires: []string{"core", "budget/api"}, Changed: changed, Notes: []release.Note{feature}},
				{Folder: "budget/api", Changed: changed, Notes: []release.Note{feature}},
				{Folder: "core", Changed: changed},
			},
			want: []release.Release{
				{Module: "budget/api", To: "v0.1.0", Kind: release.Feature, Notes: []release.Note{feature}},
				{Module: "core", To: "v0.1.0", Kind: release.Feature, Warning: "no note tells what has changed"},
				{Module: "budget", To: "v0.1.0", Kind: release.Feature, Follows: []string{"budget/api", "core"}, Notes: []release.Note{feature}},
			},
		},
		{
			name:    "a fix",
			modules: []release.Module{{Folder: "jobs", Version: "v0.2.3", Changed: changed, Notes: []release.Note{fix}}},
			want:    []release.Release{{Module: "jobs", From: "v0.2.3", To: "v0.2.4", Kind: release.Fix, Notes: []release.Note{fix}}},
		},
		{
			name:    "the largest note counts",
			modules: []release.Module{{Folder: "jobs", Version: "v1.2.3", Changed: changed, Notes: []release.Note{fix, feature}}},
			want:    []release.Release{{Module: "jobs", From: "v1.2.3", To: "v1.3.0", Kind: release.Feature, Notes: []release.Note{fix, feature}}},
		},
		{
			name:    "before version 1 the minor version may break",
			modules: []release.Module{{Folder: "jobs", Version: "v0.9.3", Changed: changed, Notes: []release.Note{breaking}}},
			want:    []release.Release{{Module: "jobs", From: "v0.9.3", To: "v0.10.0", Kind: release.Breaking, Notes: []release.Note{breaking}}},
		},
		{
			name:    "later it may not",
			modules: []release.Module{{Folder: "jobs", Version: "v1.0.0", Changed: changed, Notes: []release.Note{breaking}}},
			err:     "release jobs: a breaking change after v1.0.0 needs a module path with the next major version",
		},
		{
			name: "those who require it follow, and those who require them",
			modules: []release.Module{
				{Folder: "core", Version: "v0.1.0", Changed: changed, Notes: []release.Note{feature}},
				{Folder: "jobs", Version: "v0.4.0", Requires: []string{"core"}},
				{Folder: "fleet", Version: "v0.5.0", Requires: []string{"jobs"}},
				{Folder: "other", Version: "v0.6.0"},
			},
			want: []release.Release{
				{Module: "core", From: "v0.1.0", To: "v0.2.0", Kind: release.Feature, Notes: []release.Note{feature}},
				{Module: "jobs", From: "v0.4.0", To: "v0.4.1", Kind: release.Follow, Follows: []string{"core"}},
				{Module: "fleet", From: "v0.5.0", To: "v0.5.1", Kind: release.Follow, Follows: []string{"jobs"}},
			},
		},
		{
			name:    "a tag that is none of a release",
			modules: []release.Module{{Folder: "jobs", Version: "v1.0.0-rc.1", Changed: changed}},
			err:     `release jobs: version "v1.0.0-rc.1" is none of a release`,
		},
		{
			name:    "a circle",
			modules: []release.Module{{Folder: "a", Requires: []string{"b"}}, {Folder: "b", Requires: []string{"a"}}},
			err:     "order the modules: a and others require each other",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan, err := release.Plan(test.modules)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, plan)
		})
	}
}

package features

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	type values map[Name]bool
	tests := []struct {
		name      string
		flag      string
		env       string
		consulted []Name
		want      values
		notes     []string
	}{
		{
			name: "nothing given leaves the defaults",
			want: values{PodWebhook: true, PodUnavailableBudgetUpdateGate: true, InPlaceWorkloadVerticalScaling: true, CloneSetShortHash: false, ImagePullJobGate: true},
		},
		{
			name:      "a gate that is consulted is set without a note",
			flag:      "CloneSetShortHash=true, PodIndexLabel=false",
			consulted: []Name{CloneSetShortHash, PodIndexLabel},
			want:      values{CloneSetShortHash: true, PodIndexLabel: false},
		},
		{
			name:  "a gate of another operator is noted",
			flag:  "DaemonSetPruneIneligibleNodes=true",
			want:  values{DaemonSetPruneIneligibleNodes: true},
			notes: []string{"feature gate DaemonSetPruneIneligibleNodes is not used by this operator and is ignored"},
		},
		{
			name: "all alpha and all beta set what is not named itself",
			flag: "AllAlpha=true,AllBeta=false,TemplateNoDefaults=false,PodWebhook=true,KruiseDaemon=true",
			want: values{
				CloneSetShortHash: true, ImagePullJobGate: true, TemplateNoDefaults: false, PodIndexLabel: false, PodWebhook: true, KruiseDaemon: true,
			},
			notes: []string{
				"feature gate KruiseDaemon is not used by this operator and is ignored",
				"feature gate PodWebhook is not used by this operator and is ignored",
				"feature gate TemplateNoDefaults is not used by this operator and is ignored",
			},
		},
		{
			name:      "without pod admission what needs it is off, even if asked for",
			flag:      "PodWebhook=false,KruisePodReadinessGate=true,ResourcesDeletionProtection=true",
			consulted: []Name{PodWebhook, KruisePodReadinessGate, ResourcesDeletionProtection},
			want: values{
				KruisePodReadinessGate: false, PodUnavailableBudgetDeleteGate: false, PodUnavailableBudgetUpdateGate: false, WorkloadSpread: false,
				ResourcesDeletionProtection: true,
			},
			notes: []string{"feature gate KruisePodReadinessGate is set to false because PodWebhook is false"},
		},
		{
			name:      "without the node agent what needs it is off and pulls nothing in",
			flag:      "KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true",
			consulted: []Name{KruiseDaemon, PreDownloadImageForInPlaceUpdate, InPlaceUpdateEnvFromMetadata},
			want:      values{PreDownloadImageForInPlaceUpdate: false, ImagePullJobGate: false, InPlaceUpdateEnvFromMetadata: false, DaemonWatchingPod: false},
			notes: []string{
				"feature gate PreDownloadImageForInPlaceUpdate is set to false because KruiseDaemon is false",
				"feature gate InPlaceUpdateEnvFromMetadata is set to false because KruiseDaemon is false",
			},
		},
		{
			name:      "downloading images ahead needs pull jobs",
			flag:      "PreDownloadImageForDaemonSetUpdate=true,ImagePullJobGate=false",
			consulted: []Name{PreDownloadImageForDaemonSetUpdate, ImagePullJobGate},
			want:      values{ImagePullJobGate: true},
			notes:     []string{"feature gate ImagePullJobGate is set to true because PreDownloadImageForDaemonSetUpdate is true"},
		},
		{
			name:      "protection of CRDs needs deletion protection",
			flag:      "DeletionProtectionForCRDCascadingGate=true",
			consulted: []Name{DeletionProtectionForCRDCascadingGate},
			want:      values{DeletionProtectionForCRDCascadingGate: false},
			notes:     []string{"feature gate DeletionProtectionForCRDCascadingGate is set to false because ResourcesDeletionProtection is false"},
		},
		{
			name: "an installation without SidecarSet has pod admission off by default",
			env:  "CloneSet,StatefulSet",
			want: values{PodWebhook: false, WorkloadSpread: false},
		},
		{
			name:      "the flag wins over the list of kinds",
			env:       "CloneSet",
			flag:      "PodWebhook=true",
			consulted: []Name{PodWebhook},
			want:      values{PodWebhook: true, WorkloadSpread: true},
		},
		{
			name: "an installation with SidecarSet keeps pod admission",
			env:  "CloneSet,SidecarSet",
			want: values{PodWebhook: true},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			getenv := func(name string) string {
				if name == resourceEnableEnv {
					return test.env
				}
				return ""
			}
			set, notes, err := Parse(Source{Flag: test.flag, Getenv: getenv, Consulted: test.consulted})
			require.NoError(t, err)
			assert.Equal(t, test.notes, notes)
			for name, want := range test.want {
				assert.Equal(t, want, set.Enabled(name), name)
			}
		})
	}
}

func TestParseNamesTheGateThatIsWrong(t *testing.T) {
	for flag, want := range map[string]string{
		"CloneSetShortHash=maybe": "CloneSetShortHash",
		"CloneSetShortHash":       "CloneSetShortHash",
		"NoSuchGate=true":         "NoSuchGate",
	} {
		_, _, err := Parse(Source{Flag: flag})
		assert.ErrorContains(t, err, want)
	}
}

func TestDefaultsAreNeverChangedByParsing(t *testing.T) {
	before := Defaults().String()
	_, _, err := Parse(Source{Flag: "AllAlpha=true"})
	require.NoError(t, err)
	assert.Equal(t, before, Defaults().String())
	assert.NotContains(t, before, string(CloneSetShortHash))
}

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	set := Defaults()
	changed := set.With(CloneSetShortHash, true)
	assert.False(t, set.Enabled(CloneSetShortHash))
	assert.True(t, changed.Enabled(CloneSetShortHash))
}

func TestEnabledRefusesNamesOutsideTheTable(t *testing.T) {
	assert.PanicsWithValue(t, "feature gate NoSuchGate is not known", func() { Defaults().Enabled("NoSuchGate") })
}

func TestHelpTellsDefaults(t *testing.T) {
	lines := strings.Split(Help(PodWebhook, CloneSetShortHash), "\n")
	assert.Equal(t, []string{"CloneSetShortHash (default false)", "PodWebhook (default true)"}, lines[1:])
}

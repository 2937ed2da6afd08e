package features

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The feature gates of an operator, beside those of core.
const (
	shortHash Name = "CloneSetShortHash"
	pull      Name = "ImagePullJobGate"
	spread    Name = "WorkloadSpread"
	ahead     Name = "PreDownloadImageForDaemonSetUpdate"
	beacon    Name = "BeaconGate"
)

// own returns these gates of an operator with their dependencies, and those of core that have the names.
func own(names ...Name) []Gate {
	var found []Gate
	for _, name := range names {
		gate, isOwn := map[Name]Gate{
			shortHash: {Name: shortHash, Help: "hashes are short"},
			pull:      {Name: pull, Default: true, Needs: KruiseDaemon, ImpliedBy: []Name{PreDownloadImageForInPlaceUpdate, ahead}},
			spread:    {Name: spread, Default: true, Needs: PodWebhook},
			ahead:     {Name: ahead, Needs: KruiseDaemon},
			beacon:    {Name: beacon},
		}[name]
		if !isOwn {
			gate = Shared(name)[0]
		}
		found = append(found, gate)
	}
	return found
}

func TestParse(t *testing.T) {
	type values map[Name]bool
	tests := []struct {
		name  string
		flag  string
		env   string
		gates []Gate
		want  values
		notes []string
	}{
		{
			name:  "nothing given leaves the defaults",
			gates: own(shortHash, pull),
			want:  values{PodWebhook: true, InPlaceWorkloadVerticalScaling: true, EnableExternalCerts: false, shortHash: false, pull: true},
		},
		{
			name:  "a gate that is read is set without a note",
			flag:  "CloneSetShortHash=true, WorkloadSpread=false",
			gates: own(shortHash, spread),
			want:  values{shortHash: true, spread: false},
		},
		{
			name:  "a gate that OpenKruise does not have is one of its operator",
			flag:  "BeaconGate=true",
			gates: own(beacon),
			want:  values{beacon: true},
		},
		{
			name: "gates of other operators and of OpenKruise are noted",
			flag: "DaemonSetPruneIneligibleNodes=true,UpdateWarnings=false,PodProbeMarkerGate=false",
			want: values{UpdateWarnings: false},
			notes: []string{
				"feature gate DaemonSetPruneIneligibleNodes is not used by this operator and is ignored",
				"feature gate PodProbeMarkerGate is not used by this operator and is ignored",
				"feature gate UpdateWarnings is not used by this operator and is ignored",
			},
		},
		{
			name:  "all alpha and all beta set what is not named itself",
			flag:  "AllAlpha=true,AllBeta=false,EnableExternalCerts=false,PodWebhook=true,KruiseDaemon=true",
			gates: own(shortHash, pull, spread, EnableExternalCerts),
			want: values{
				shortHash: true, pull: true, spread: false, EnableExternalCerts: false, ResourcesDeletionProtection: true, PodWebhook: true,
				UpdateWarnings: false,
			},
			notes: []string{
				"feature gate KruiseDaemon is not used by this operator and is ignored",
				"feature gate PodWebhook is not used by this operator and is ignored",
				"feature gate ImagePullJobGate is set to true because PreDownloadImageForInPlaceUpdate is true",
			},
		},
		{
			name:  "without pod admission what needs it is off, even if asked for",
			flag:  "PodWebhook=false,WorkloadSpread=true,ResourcesDeletionProtection=true",
			gates: own(PodWebhook, spread, ResourcesDeletionProtection),
			want:  values{spread: false, ResourcesDeletionProtection: true},
			notes: []string{"feature gate WorkloadSpread is set to false because PodWebhook is false"},
		},
		{
			name:  "without the node agent what needs it is off and turns nothing on",
			flag:  "KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true,ImagePullJobGate=false",
			gates: own(KruiseDaemon, PreDownloadImageForInPlaceUpdate, InPlaceUpdateEnvFromMetadata, pull),
			want:  values{PreDownloadImageForInPlaceUpdate: false, pull: false, InPlaceUpdateEnvFromMetadata: false},
			notes: []string{
				"feature gate PreDownloadImageForInPlaceUpdate is set to false because KruiseDaemon is false",
				"feature gate InPlaceUpdateEnvFromMetadata is set to false because KruiseDaemon is false",
			},
		},
		{
			name:  "a dependency of a gate that this operator does not read is not noted",
			flag:  "KruiseDaemon=false",
			gates: own(KruiseDaemon),
			want:  values{InPlaceUpdateEnvFromMetadata: false},
		},
		{
			name:  "downloading images ahead needs pull jobs, also where another operator does so",
			flag:  "PreDownloadImageForDaemonSetUpdate=true,ImagePullJobGate=false",
			gates: own(pull),
			want:  values{pull: true},
			notes: []string{
				"feature gate PreDownloadImageForDaemonSetUpdate is not used by this operator and is ignored",
				"feature gate ImagePullJobGate is set to true because PreDownloadImageForDaemonSetUpdate is true",
			},
		},
		{
			name:  "an installation without SidecarSet has pod admission off by default",
			env:   "CloneSet,StatefulSet",
			gates: own(spread),
			want:  values{PodWebhook: false, spread: false},
			notes: []string{"feature gate WorkloadSpread is set to false because PodWebhook is false"},
		},
		{
			name:  "the flag wins over the list of kinds",
			env:   "CloneSet",
			flag:  "PodWebhook=true",
			gates: own(PodWebhook, spread),
			want:  values{PodWebhook: true, spread: true},
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
			set, notes, err := Parse(Source{Flag: test.flag, Getenv: getenv, Gates: test.gates})
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
	before := Defaults(own(shortHash)...).String()
	_, _, err := Parse(Source{Flag: "AllAlpha=true", Gates: own(shortHash)})
	require.NoError(t, err)
	assert.Equal(t, before, Defaults(own(shortHash)...).String())
	assert.NotContains(t, before, string(shortHash))
	assert.Contains(t, before, string(KruiseDaemon))
}

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	set := Defaults(own(shortHash)...)
	changed := set.With(shortHash, true)
	assert.False(t, set.Enabled(shortHash))
	assert.True(t, changed.Enabled(shortHash))
}

// Who reads a feature gate declares it.
func TestEnabledRefusesGatesOfOthers(t *testing.T) {
	set, _, err := Parse(Source{Flag: "CloneSetShortHash=true", Gates: own(spread)})
	require.NoError(t, err)
	assert.PanicsWithValue(t, "feature gate CloneSetShortHash is not known", func() { set.Enabled(shortHash) })
	assert.PanicsWithValue(t, "feature gate CloneSetShortHash is none of core", func() { Shared(shortHash) })
}

func TestHelpTellsDefaults(t *testing.T) {
	lines := strings.Split(Help(own(PodWebhook, shortHash)...), "\n")
	assert.Equal(t, []string{"CloneSetShortHash (default false): hashes are short", "PodWebhook (default true): webhooks for pods are active"}, lines[1:])
}

// The names are OpenKruise's, and are accepted by every operator as they were given to its manager.
func TestEveryGateOfOpenKruiseIsAccepted(t *testing.T) {
	for _, name := range accepted() {
		_, notes, err := Parse(Source{Flag: string(name) + "=true"})
		require.NoError(t, err, name)
		assert.Equal(t, []string{"feature gate " + string(name) + " is not used by this operator and is ignored"}, notes)
		assert.False(t, has(shared(), name), "%s is one of core", name)
	}
}

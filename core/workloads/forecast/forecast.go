package forecast

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// longest is the most bytes of a warning: the API of admission webhooks asks for fewer than 256 characters.
const longest = 255

// Edit is an edit of the pod template of a workload, and the settings by which the workload brings its pods there.
type Edit struct {
	// From and To are the templates, as written.
	From, To *corev1.PodTemplateSpec
	// ClaimsChange is true if the claim templates change, too.
	ClaimsChange bool
	// Options decide which changes may happen in place.
	Options inplace.Options
	Policy  podupdate.Policy
	// Recreates is the setting by which the workload always recreates pods, such as "podUpdatePolicy is ReCreate".
	Recreates string

	// Pods is how many pods the workload has, and Reached is how many of them the update reaches; -1 if that is unknown
	// and Where describes them.
	Pods, Reached int32
	Where         string
	// Behind is how many of the pods an earlier update has not reached.
	Behind int32
	// MaxUnavailable and MaxSurge are the limits of the update, in pods.
	MaxUnavailable, MaxSurge int32
	// Paused and OnDelete are true if the update does not begin by itself.
	Paused, OnDelete bool
}

// Warnings returns at most three sentences about the edit, each of at most 255 bytes; none if the templates mean the same
// or there are no pods.
func (e Edit) Warnings() []string {
	if e.Pods == 0 || podspec.Equal(e.From, e.To, e.Options.DefaultPullPolicy) {
		return nil
	}
	var warnings []string
	for _, text := range e.sentences() {
		warnings = append(warnings, shorten(text))
	}
	return warnings
}

func (e Edit) sentences() []string {
	u, err := e.inPlace()
	switch {
	case e.OnDelete:
		return []string{"no pod changes by itself: with updateStrategy type OnDelete, a pod gets the new template after you delete the old one"}
	case e.Reached == 0:
		return []string{fmt.Sprintf("no pod changes: partition keeps all %d pods at the older revision", e.Pods)}
	case e.Policy == podupdate.InPlaceOnly && err != nil:
		return []string{fmt.Sprintf("no pod changes: podUpdatePolicy is InPlaceOnly, and the update is %v", err)}
	case !e.Policy.InPlace():
		return []string{e.begin("will be recreated") + ": " + e.Recreates}
	case err != nil:
		return []string{e.begin("will be recreated") + ": " + reason(err)}
	}
	effect := u.Effect(e.From)
	all := []string{e.begin("will be updated in place") + ": " + describe(effect)}
	if len(effect.Restarts) == 0 {
		all = []string{e.subject() + " will be updated in place: " + describe(effect)}
	}
	if effect.ByAgent {
		all = append(all, e.withoutAgent())
	}
	if e.Behind > 0 && e.Policy == podupdate.InPlaceIfPossible {
		all = append(all, fmt.Sprintf("an earlier update has not reached %d pods: these will be recreated if its changes need that", e.Behind))
	}
	return all
}

// inPlace returns the update in place from the one template to the other.
func (e Edit) inPlace() (*inplace.Update, error) {
	from := &inplace.Revision{Name: "from", Template: e.From}
	to := &inplace.Revision{Name: "to", Template: e.To}
	if e.ClaimsChange {
		from.ClaimsHash, to.ClaimsHash = new("from"), new("to")
	}
	return inplace.Diff(from, to, e.Options)
}

// begin is the beginning of a sentence about pods that leave service.
func (e Edit) begin(verb string) string {
	pace := fmt.Sprintf(", at most %d at a time", e.MaxUnavailable)
	switch {
	case e.MaxSurge > 0 && e.MaxUnavailable > 0:
		pace = fmt.Sprintf(", at most %d unavailable at a time, with up to %d surge pods", e.MaxUnavailable, e.MaxSurge)
	case e.MaxSurge > 0:
		pace = fmt.Sprintf(", with up to %d surge pods at a time", e.MaxSurge)
	}
	return e.subject() + " " + verb + pace
}

func (e Edit) subject() string {
	subject := fmt.Sprintf("%d of %d pods", e.Reached, e.Pods)
	if e.Reached < 0 {
		subject = "pods " + e.Where
	}
	if e.Paused {
		return "once the update is not paused, " + subject
	}
	return subject
}

// reason is why pods cannot be updated in place.
func reason(err error) string {
	if cause, ok := errors.AsType[*inplace.NotPossibleError](err); ok && cause.Path != "" {
		return cause.Path + ": " + cause.Message
	}
	return err.Error()
}

// withoutAgent describes the pods on nodes where nothing restarts containers that keep their image.
func (e Edit) withoutAgent() string {
	if e.Policy == podupdate.InPlaceOnly {
		return "the node agent restarts containers that keep their image: pods on nodes without it wait with reason NodeAgentMissing"
	}
	return "the node agent restarts containers that keep their image: pods on nodes without it will be recreated"
}

// describe names the containers that restart, or run on with other resources.
func describe(effect inplace.Effect) string {
	if len(effect.Restarts) > 0 {
		var all []string
		for _, r := range effect.Restarts {
			all = append(all, fmt.Sprintf("%s (%s)", r.Container, strings.Join(r.Causes, ", ")))
		}
		return restartOf(all)
	}
	if len(effect.Resized) > 0 {
		return "no container restarts; resources change in " + list(effect.Resized)
	}
	return "no container restarts; metadata changes"
}

func restartOf(containers []string) string {
	if len(containers) == 1 {
		return "container " + containers[0] + " restarts"
	}
	return "containers " + list(containers) + " restart"
}

// mostNames is how many names a list has before it is cut.
const mostNames = 4

func list(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		names = append(slices.Clone(names[:mostNames]), fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// shorten cuts a text that is too long at the boundary of a character.
func shorten(text string) string {
	const rest = "..."
	if len(text) <= longest {
		return text
	}
	end := longest - len(rest)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + rest
}

package simulate

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shortenLimit bounds the passes that are played in search of a shorter story.
const shortenLimit = 100_000

var withoutFlag = flag.String("without", "", "what to leave out of a random world, as a failed walk names it") //nolint:gochecknoglobals // a flag

// cuts are what is left out of a world: edits by their number ("edit3"), acts of foreign actors
// ("act7"), faults by the names of their fields ("Lag"), the kubelet's bad manners ("Nasty") and
// failing probes ("Flaps").
type cuts map[string]bool

// leftOut returns what flag -without names.
func leftOut() cuts {
	out := cuts{}
	for name := range strings.SplitSeq(*withoutFlag, ",") {
		out[name] = name != ""
	}
	return out
}

// String returns the value of flag -without.
func (c cuts) String() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(name string) bool { return !c[name] })
	if len(names) == 0 {
		return ""
	}
	return " (-without=" + strings.Join(names, ",") + ")"
}

func (c cuts) with(names ...string) cuts {
	more := maps.Clone(c)
	for _, name := range names {
		more[name] = true
	}
	return more
}

// apply takes from a world that has not begun yet, and from its faults, what is left out.
func (c cuts) apply(w *World, f *Faults) {
	w.without = c
	w.options.Calm = w.options.Calm || c["Nasty"]
	if c["Flaps"] {
		w.options.Flaps = 0
	}
	fields := reflect.ValueOf(f).Elem()
	for _, name := range kindsOfFaults() {
		if c[name] {
			fields.FieldByName(name).SetZero()
		}
	}
}

// kindsOfFaults returns the names of the fields of Faults that say how often or how much.
func kindsOfFaults() []string {
	var names []string
	for field := range reflect.TypeFor[Faults]().Fields() {
		if field.Type.Kind() == reflect.Float64 || field.Name == "Lag" {
			names = append(names, field.Name)
		}
	}
	return names
}

// shorten looks for the shortest story that fails as the world of the seed did: it leaves out one thing
// after the other and keeps what changes nothing about the failure.
func (walk Walk) shorten(t testing.TB, seed uint64, w *World, err error) (*World, cuts, error) {
	t.Helper()
	best, how, out := w, err, leftOut()
	passes, longest := w.passes, len(w.story)*3/2 // a world with less in it may be slower
	try := func(names ...string) {
		if len(names) == 0 || passes > shortenLimit {
			return
		}
		shorter := out.with(names...)
		played, failure := walk.play(t, seed, shorter)
		passes += played.passes
		if failure != nil && kindOfFailure(failure) == kindOfFailure(err) && len(played.story) <= longest {
			best, how, out = played, failure, shorter
		}
	}
	conditions := append(kindsOfFaults(), "Flaps", "Nasty")
	for _, name := range append(conditions, conditions...) {
		if !out[name] {
			try(name)
		}
	}
	for size := max(w.acts/2, 1); ; size /= 2 {
		for from := best.acts; from > 0; from -= size {
			try(numbered("act", max(from-size, 0)+1, from)...)
		}
		if size <= 1 {
			break
		}
	}
	for range 2 {
		for i := w.edits; i > 0; i-- {
			if name := fmt.Sprint("edit", i); !out[name] {
				try(name)
			}
		}
	}
	return best, out, how
}

func numbered(what string, from, to int) []string {
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprint(what, i))
	}
	return names
}

var particulars = regexp.MustCompile(`t=\S+|\S*\d\S*`)

// kindOfFailure returns what a failure says first, without times, names and numbers.
func kindOfFailure(err error) string {
	text := strings.TrimPrefix(err.Error(), "violated:\n")
	text = strings.TrimSpace(particulars.ReplaceAllString(text, ""))
	kind, _, _ := strings.Cut(text, ":")
	return kind
}

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

// shortenLimit bounds the passes that are played to find a shorter story.
const shortenLimit = 100_000

var withoutFlag = flag.String("without", "", "what to leave out of a random world, as a failed walk names it") //nolint:gochecknoglobals // a flag

// cuts are the parts that are left out of a world: edits by number ("edit3"), acts of foreign actors by number
// ("act7"), faults by the name of their field ("Lag"), random delays and order ("Random", see Options.Calm), failing
// probes ("Flaps") and passes that have no time for all of their plans ("Slices").
type cuts map[string]bool

// leftOut returns the cuts that flag -without names.
func leftOut() cuts {
	out := cuts{}
	for name := range strings.SplitSeq(*withoutFlag, ",") {
		out[name] = name != ""
	}
	return out
}

// String returns the flag -without for these cuts, empty if there are none.
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

// apply removes the cuts from a world that has not started yet, and from its faults.
func (c cuts) apply(w *World, f *Faults) {
	w.without = c
	w.Options.Calm = w.Options.Calm || c["Random"]
	if c["Flaps"] {
		w.Options.Flaps = 0
	}
	fields := reflect.ValueOf(f).Elem()
	for _, name := range kindsOfFaults() {
		if c[name] {
			fields.FieldByName(name).SetZero()
		}
	}
}

// kindsOfFaults returns the names of the fields of Faults that are probabilities or amounts.
func kindsOfFaults() []string {
	var names []string
	for field := range reflect.TypeFor[Faults]().Fields() {
		if field.Type.Kind() == reflect.Float64 || field.Name == "Lag" {
			names = append(names, field.Name)
		}
	}
	return names
}

// shorten searches for the shortest story that fails in the same way as the world of the seed. It leaves out one part
// after the other, and restores a part if the world no longer fails in that way.
func (walk Walk) shorten(t testing.TB, seed uint64, w *World, err error) (*World, cuts, error) {
	t.Helper()
	best := w
	how := err
	out := leftOut()
	passes, longest := w.passes, w.Lines()*3/2 // without some parts a world may be slower
	try := func(names ...string) {
		if len(names) == 0 || passes > shortenLimit {
			return
		}
		shorter := out.with(names...)
		played, failure := walk.play(t, seed, shorter)
		passes += played.passes
		if failure != nil && kindOfFailure(failure) == kindOfFailure(err) && played.Lines() <= longest {
			best, how, out = played, failure, shorter
		}
	}
	conditions := append(kindsOfFaults(), "Flaps", "Random", shortOfTime)
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

// kindOfFailure returns the first part of a failure's text, without times, names and numbers.
func kindOfFailure(err error) string {
	text := strings.TrimPrefix(err.Error(), "violated:\n")
	text = strings.TrimSpace(particulars.ReplaceAllString(text, ""))
	kind, _, _ := strings.Cut(text, ":")
	return kind
}

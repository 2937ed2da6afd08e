package seeds

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"testing"
	"time"
)

// Variable is the environment variable with the text from which the first seed is made.
const Variable = "FLOTILLA_SEED"

// ReportPrefix begins the line on the standard output that holds a Report in JSON.
const ReportPrefix = "walked "

var (
	first  = flag.Uint64("walk", 0, "the seed of the first random world; 0: the one of FLOTILLA_SEED") //nolint:gochecknoglobals // a flag
	worlds = flag.Int("walks", 0, "how many random worlds each test plays; 0: as many as it wants")    //nolint:gochecknoglobals // a flag
	soak   = flag.Duration("soak", 0, "for how long each test plays random worlds, however many")      //nolint:gochecknoglobals // a flag
)

// mostFailed is how many worlds may fail before a soak gives up a test.
const mostFailed = 5

// Report tells how many worlds of one test were played and which failed.
type Report struct {
	// Test is the test's name.
	Test string `json:"test"`
	// From is the first seed, Worlds how many seeds were played.
	From   uint64 `json:"from"`
	Worlds int    `json:"worlds"`
	// Failed are the seeds of the worlds that failed.
	Failed []uint64 `json:"failed,omitempty"`
}

// Each plays n worlds in subtests that are named by their seeds, and returns how many were played. The first
// that fails ends it, but not in a soak, which plays on until its time is over or five have failed.
func Each(t *testing.T, n int, play func(t *testing.T, seed uint64)) int {
	t.Helper()
	if *worlds > 0 {
		n = *worlds
	}
	r := Report{Test: t.Name(), From: firstSeed()}
	begin := time.Now()
	more := func() bool { return r.Worlds < n && len(r.Failed) == 0 }
	if *soak > 0 {
		more = func() bool { return r.Worlds == 0 || time.Since(begin) < *soak && len(r.Failed) < mostFailed }
	}
	for ; more(); r.Worlds++ {
		seed := r.From + uint64(r.Worlds)
		if !t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Helper()
			defer tell(t, seed)
			play(t, seed)
		}) {
			r.Failed = append(r.Failed, seed)
		}
	}
	if *soak > 0 {
		line, _ := json.Marshal(r) // numbers and names
		fmt.Printf("\n%s%s\n", ReportPrefix, line)
	}
	return r.Worlds
}

// tell logs how to play the failed world of a test again.
func tell(t *testing.T, seed uint64) {
	t.Helper()
	fault := recover()
	if t.Failed() || fault != nil {
		t.Logf("this world: -walk=%d -walks=1", seed)
	}
	if fault != nil {
		fmt.Printf("panic in the world of -walk=%d -walks=1\n", seed)
		panic(fault)
	}
}

// firstSeed returns the first seed.
func firstSeed() uint64 {
	if *first > 0 {
		return *first
	}
	return from(os.Getenv(Variable))
}

// from derives a seed from a text: 1 from an empty one.
func from(text string) uint64 {
	if text == "" {
		return 1
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // never fails
	return uint64(h.Sum32())
}

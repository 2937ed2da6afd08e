package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// slowest is how many tests a summary names.
const slowest = 10

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// Test is one run of a test or of a subtest.
type Test struct {
	Package, Name string
	// Result is "pass", "fail" or "skip". A test that did not end has failed.
	Result  string
	Elapsed time.Duration
	Output  string
}

// Package is one run of the tests of a package.
type Package struct {
	Path   string
	Failed bool
	Tests  []Test // in the order in which they began
	Output string // of no test
}

// Read reads the packages until the end of the input. It calls ended for each as soon as its tests have ended, and said for
// every line that belongs to no package, such as what make or the compiler says.
func Read(from io.Reader, ended func(Package), said func(line string)) error {
	open := map[string]*running{}
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil {
				e = event{Output: string(line)}
			}
			switch e.Package {
			case "":
				if e.Output != "" {
					said(e.Output)
				}
			default:
				if open[e.Package] == nil {
					open[e.Package] = &running{Package: Package{Path: e.Package}, tests: map[string]int{}}
				}
				if p := open[e.Package]; p.add(e) {
					delete(open, e.Package)
					ended(p.end())
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read test results: %w", err)
		}
	}
	for _, p := range open { // go test was stopped
		p.Failed = true
		ended(p.end())
	}
	return nil
}

// running is a package whose tests run.
type running struct {
	Package
	tests map[string]int // the last run of each test, an index of Tests
}

// add reports whether the tests of the package have ended.
func (p *running) add(e event) bool {
	if e.Test == "" {
		p.Output += e.Output
		p.Failed = p.Failed || e.Action == "fail"
		return e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
	}
	if e.Action == "run" {
		p.tests[e.Test] = len(p.Tests)
		p.Tests = append(p.Tests, Test{Package: p.Path, Name: e.Test})
	}
	at, known := p.tests[e.Test]
	if !known {
		return false
	}
	t := &p.Tests[at]
	t.Output += e.Output
	if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
		t.Result = e.Action
		t.Elapsed = time.Duration(e.Elapsed * float64(time.Second))
	}
	return false
}

func (p *running) end() Package {
	for i := range p.Tests {
		if p.Tests[i].Result == "" {
			p.Tests[i].Result = "fail"
		}
	}
	return p.Package
}

// Text is what people read of the package: a line when its tests have passed, else what failed tests have printed, too.
func (p Package) Text() string {
	var text strings.Builder
	if p.Failed {
		for _, t := range p.Tests {
			if t.Result == "fail" {
				text.WriteString(t.Output)
			}
		}
	}
	for line := range strings.Lines(p.Output) {
		if p.Failed || line != "PASS\n" {
			text.WriteString(line)
		}
	}
	return text.String()
}

// Summary counts tests.
type Summary struct {
	Passed, Failed, Skipped int
	slow                    []Test
}

// Add counts the tests of a package. A package that fails without a failed test counts as one.
func (s *Summary) Add(p Package) {
	before := s.Failed
	for _, t := range p.Tests {
		switch t.Result {
		case "pass":
			s.Passed++
		case "skip":
			s.Skipped++
		default:
			s.Failed++
		}
		if !strings.Contains(t.Name, "/") {
			t.Output = ""
			s.slow = append(s.slow, t)
		}
	}
	if p.Failed && s.Failed == before {
		s.Failed++
	}
	slices.SortStableFunc(s.slow, func(a, b Test) int { return int(b.Elapsed - a.Elapsed) })
	s.slow = s.slow[:min(len(s.slow), slowest)]
}

// String is the slowest tests and, on the last line, the numbers.
func (s *Summary) String() string {
	var text strings.Builder
	text.WriteString("the slowest tests:\n")
	for _, t := range s.slow {
		fmt.Fprintf(&text, "%7.1f s  %s.%s\n", t.Elapsed.Seconds(), t.Package, t.Name)
	}
	fmt.Fprintf(&text, "%d passed, %d failed, %d skipped\n", s.Passed, s.Failed, s.Skipped)
	return text.String()
}

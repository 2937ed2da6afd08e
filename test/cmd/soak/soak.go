package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// shortestSlice is the shortest time for which a test plays before the next one.
const shortestSlice = time.Second

// soak plays all walks in turn until the time is over.
type soak struct {
	duration  time.Duration
	from      uint64
	processes int
	out       io.Writer
	walks     []*walk
	mutex     sync.Mutex // guards out
}

// walk is one test and the results of its worlds.
type walk struct {
	binary, dir, path, test string
	next                    uint64
	worlds                  int
	failed                  []string // the commands that replay them
}

// report is core/testing/seeds.Report.
type report struct {
	From   uint64   `json:"from"`
	Worlds int      `json:"worlds"`
	Failed []uint64 `json:"failed"`
}

// add compiles the tests of the suite that are chosen.
func (s *soak) add(ctx context.Context, of suite, chosen *regexp.Regexp, folder string) error {
	binary := ""
	for _, test := range of.tests {
		if !chosen.MatchString(of.path + "." + test) {
			continue
		}
		if binary == "" {
			binary = filepath.Join(folder, strings.ReplaceAll(of.path, "/", "_")+".test")
			compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".") //nolint:gosec // the project's own packages
			compile.Dir = of.dir
			if out, err := compile.CombinedOutput(); err != nil {
				return fmt.Errorf("compiling the tests of %s: %w\n%s", of.path, err, out)
			}
		}
		s.walks = append(s.walks, &walk{
			binary: binary,
			dir:    of.dir,
			path:   of.path,
			test:   test,
			next:   s.from,
		})
	}
	return nil
}

// play plays all walks in turn, repeatedly, and prints the summary.
func (s *soak) play(ctx context.Context) error {
	s.processes = min(s.processes, len(s.walks))
	slice := max(min(s.duration*time.Duration(s.processes)/time.Duration(2*len(s.walks)), time.Minute), shortestSlice)
	s.tell("%d tests play random worlds from seed %d for %s, %d at a time\n", len(s.walks), s.from, s.duration, s.processes)
	turns := make(chan *walk, len(s.walks))
	for _, w := range s.walks {
		turns <- w
	}
	end := time.Now().Add(s.duration)
	var workers sync.WaitGroup
	for range s.processes {
		workers.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				w := <-turns
				s.turn(ctx, w, max(min(slice, time.Until(end)), time.Second))
				turns <- w
			}
		})
	}
	workers.Wait()
	return s.sum()
}

// turn plays one test for the slice.
func (s *soak) turn(ctx context.Context, w *walk, slice time.Duration) {
	command := exec.CommandContext(ctx, w.binary, "-test.run=^"+w.test+"$", "-test.timeout="+(slice+20*time.Minute).String(), //nolint:gosec // as compiled above
		fmt.Sprint("-walk=", w.next), "-soak="+slice.String())
	command.Dir = w.dir
	command.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return
	}
	r, found := readReport(string(out))
	if !found && err == nil {
		return // it only checks walks
	}
	if !found {
		s.tell("%s %s ended from seed %d without a report: %v\n%s\n", w.path, w.test, w.next, err, out)
		w.failed = append(w.failed, "a world after -walk="+fmt.Sprint(w.next)+", see above")
		w.next += 100_000 // skip the world that ended the test
		return
	}
	w.next += uint64(r.Worlds)
	w.worlds += r.Worlds
	for _, seed := range r.Failed {
		w.failed = append(w.failed, fmt.Sprintf("(cd %s && go test -run '^%s$' -walk=%d -walks=1 .)", relative(w.dir), w.test, seed))
	}
	if err != nil {
		s.tell("%s\n", out)
	}
}

// readReport finds the line in which a test reports what it has played.
func readReport(out string) (report, bool) {
	for line := range strings.Lines(out) {
		var r report
		if text, ok := strings.CutPrefix(line, "walked "); ok && json.Unmarshal([]byte(text), &r) == nil {
			return r, true
		}
	}
	return report{}, false
}

// sum prints how many worlds were played and which of them failed.
func (s *soak) sum() error {
	worlds, failed := 0, 0
	for _, w := range s.walks {
		s.tell("%9d worlds, %d failed: %s %s\n", w.worlds, len(w.failed), relative(w.dir), w.test)
		worlds, failed = worlds+w.worlds, failed+len(w.failed)
	}
	for _, w := range s.walks {
		for _, command := range w.failed {
			s.tell("failed: %s\n", command)
		}
	}
	s.tell("%9d worlds in all\n", worlds)
	if failed > 0 {
		return fmt.Errorf("%d of %d worlds failed", failed, worlds)
	}
	return nil
}

func (s *soak) tell(format string, arguments ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fmt.Fprintf(s.out, format, arguments...)
}

// relative returns the folder relative to the working directory.
func relative(dir string) string {
	here, err := os.Getwd()
	if err != nil {
		return dir
	}
	if short, err := filepath.Rel(here, dir); err == nil {
		return short
	}
	return dir
}

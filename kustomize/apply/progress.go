package apply

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/clock"
)

// Progress shows the work in progress, one line for each stage: on a terminal the line is updated in place, elsewhere it is
// written when the stage stands.
type Progress struct {
	Out io.Writer
	// Live means that Out is a terminal.
	Live  bool
	Clock clock.PassiveClock

	name  string
	begun time.Time
}

// NewProgress returns a Progress that writes to a writer, which may be a terminal.
func NewProgress(out io.Writer) *Progress {
	file, isFile := out.(*os.File)
	return &Progress{
		Out:   out,
		Live:  isFile && term.IsTerminal(int(file.Fd())),
		Clock: clock.RealClock{},
	}
}

// Begin starts a line.
func (p *Progress) Begin(name string) {
	p.name, p.begun = name, p.Clock.Now()
	p.Tell("")
}

// Tell shows the condition that the stage waits for.
func (p *Progress) Tell(waitsFor string) {
	if !p.Live {
		return
	}
	const most = 90 // a longer line would wrap and could not be updated
	line := strings.TrimSpace(p.name + ": " + waitsFor)
	if len(line) > most {
		line = line[:most]
	}
	fmt.Fprintf(p.Out, "\r\x1b[K%s", line)
}

// End finishes the line.
func (p *Progress) End(result string) {
	start := ""
	if p.Live {
		start = "\r\x1b[K"
	}
	fmt.Fprintf(p.Out, "%s%s: %s (%.1f s)\n", start, p.name, result, p.Clock.Since(p.begun).Seconds())
}

// Count returns a number with its noun: "1 object" or "2 objects".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

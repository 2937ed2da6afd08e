package rollout

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

const (
	// redrawEvery is the shortest time between two drawings: a rollout of many pods changes faster than eyes can see.
	redrawEvery = 100 * time.Millisecond
	// defaultWidth is the width of a terminal which does not report its own.
	defaultWidth = 80
)

func (c common) watch() *cobra.Command {
	var timeout time.Duration
	command := c.command("watch", "Draw a rollout until its end", `Draw a rollout until its end, with a line for each revision and a cell for each pod. The exit codes are the same as in
flotilla rollout status. If the output is not a terminal, each change is printed as a line of text.`,
		func(ctx context.Context, client *workload.Client, s *workload.Set) error {
			return c.follow(ctx, client, s, timeout)
		})
	command.Flags().DurationVar(&timeout, "timeout", 0, "time limit, such as 5m; 0 means no limit")
	return command
}

// follow draws until the rollout ends, or time is up.
func (c common) follow(ctx context.Context, client *workload.Client, s *workload.Set, timeout time.Duration) error {
	to := NewScreen(c.streams.Out)
	ctx, cancel := withTimeout(ctx, timeout)
	defer cancel()
	watched, err := client.Watch(ctx, s, true)
	if ctx.Err() != nil {
		return ended(ctx, timeout, progress.Judge(s))
	}
	if err != nil {
		return err
	}
	pause := c.clock.NewTicker(redrawEvery)
	defer pause.Stop()
	for {
		now, err := watched.Set()
		if err != nil {
			return err
		}
		if now == nil || now.UID != s.UID {
			return fmt.Errorf("%s was deleted", s)
		}
		to.Show(now, watched.Pods(now))
		p := progress.Judge(now)
		if p.Phase == progress.Complete || p.Phase == progress.Failed {
			return answer(p)
		}
		select {
		case <-watched.Changed():
		case <-ctx.Done():
			return ended(ctx, timeout, p)
		}
		<-pause.C()
	}
}

// Screen is where a rollout is drawn: in place on a terminal, else line by line.
type Screen struct {
	out   io.Writer
	width func() int // nil where there is no terminal
	drawn int        // lines of the last drawing
	last  string
}

// IsTerminal reports whether the screen draws in place.
func (s *Screen) IsTerminal() bool { return s.width != nil }

// NewScreen returns a screen that writes to out.
func NewScreen(out io.Writer) *Screen {
	s := &Screen{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.width = func() int {
			width, _, err := term.GetSize(int(file.Fd()))
			if err != nil || width <= 0 {
				return defaultWidth
			}
			return width
		}
	}
	return s
}

// Show draws a workload with its pods.
func (s *Screen) Show(set *workload.Set, pods []*corev1.Pod) {
	if s.width == nil {
		p := progress.Judge(set)
		if line := fmt.Sprintf("%s/%s %s: %s", p.Kind, p.Name, p.Phase, describe(set, pods)); line != s.last {
			s.last = line
			fmt.Fprintln(s.out, line)
		}
		return
	}
	lines := draw(set, pods, s.width())
	var text strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", s.drawn) // to the first line of the last drawing
	}
	text.WriteString("\r\x1b[J") // which goes away with all below it
	text.WriteString(strings.Join(lines, "\n") + "\n")
	s.drawn = len(lines)
	fmt.Fprint(s.out, text.String())
}

// Command reproduce brings back problems of the page docs/contributing/troubles.md: it runs the test of a problem with the fix and
// without it. The files of the work tree stay as they are: the compiler reads the changed ones from another folder.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// testdata is the folder of the rows and their patches, in the repository.
const testdata = "test/cmd/reproduce/testdata"

// page is the page of the problems, in the repository.
const page = "docs/contributing/troubles.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "reproduce:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	flags := pflag.NewFlagSet("reproduce", pflag.ContinueOnError)
	root := flags.String("root", ".", "the folder of the repository")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	all, err := readRows(*root)
	if err != nil {
		return err
	}
	chosen, err := choose(all, flags.Args())
	if err != nil {
		return err
	}
	c, err := newChecker(*root)
	if err != nil {
		return err
	}
	defer os.RemoveAll(c.folder)
	wrong := 0
	fmt.Fprintf(out, "| row | issues | test | time | verdict |\n|---|---|---|---|---|\n")
	for _, r := range chosen {
		begin := time.Now()
		failure, err := c.check(ctx, r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verdict := "passes with the fix, fails without it"
		if err != nil {
			wrong++
			verdict, failure, _ = strings.Cut(err.Error(), "\n")
		}
		fmt.Fprintf(out, "| %s | %s | %s | %d s | %s |\n", r.Name, cmp.Or(strings.Join(r.issues, ", "), "–"), r.Test,
			int(time.Since(begin).Seconds()), verdict)
		if err != nil || flags.NArg() > 0 {
			fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(failure))
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d rows do not reproduce their problem", wrong, len(chosen))
	}
	return nil
}

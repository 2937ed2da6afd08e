package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// headerTimeout bounds how long a client may take to send a request.
const headerTimeout = 5 * time.Second

// errCrash ends the process instead of serving.
var errCrash = errors.New("crashing as told to")

func main() {
	if len(os.Args) == 3 && os.Args[1] == "sleep" { // for hooks, because the image has no shell
		if d, err := time.ParseDuration(os.Args[2]); err == nil {
			time.Sleep(d)
			return
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	binary, err := os.Executable()
	if err == nil {
		err = run(ctx, filepath.Dir(binary), os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

// app has the facts that answers are made from.
type app struct {
	version   string
	readyAt   time.Time
	failingAt time.Time // zero: never
	journal   string    // empty: none
	held      []byte
}

// run serves until ctx ends. The version and the order to crash are read from files in folder.
func run(ctx context.Context, folder string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("app", flag.ContinueOnError)
	address := flags.String("address", ":8080", "where to listen")
	readyAfter := flags.Duration("ready-after", 0, "time from start to ready")
	failAfter := flags.Duration("fail-after", 0, "time from start to no longer ready; 0: never")
	crash := flags.Bool("crash", false, "end with an error at once")
	deaf := flags.Bool("deaf", false, "ignore the signal to end")
	crashAfter := flags.Duration("crash-after", 0, "time from start to an end with an error; 0: never")
	memory := flags.Int("memory", 0, "MiB of memory to hold")
	journal := flags.String("journal", "", "file that gets the version as a line at each start, served at /journal")
	if err := flags.Parse(args); err != nil {
		return err
	}
	version, err := os.ReadFile(filepath.Join(folder, "version"))
	if err != nil {
		return err
	}
	a := app{
		version: strings.TrimSpace(string(version)),
		readyAt: time.Now().Add(*readyAfter),
		journal: *journal,
		held:    hold(*memory),
	}
	if err := a.record(); err != nil {
		return err
	}
	if *failAfter > 0 {
		a.failingAt = time.Now().Add(*failAfter)
	}
	fmt.Fprintf(out, "version %s\n%s\n", a.version, environment())
	if _, err := os.Stat(filepath.Join(folder, "crash")); err == nil || *crash {
		return errCrash
	}
	if *deaf {
		ctx = context.WithoutCancel(ctx)
	}
	if *crashAfter > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, *crashAfter, errCrash)
		defer stop()
	}
	return a.serve(ctx, *address, out)
}

// hold returns memory that is in use, and not only reserved.
func hold(mib int) []byte {
	held := make([]byte, mib<<20)
	for i := range held {
		held[i] = 1
	}
	return held
}

// record adds the version to the journal.
func (a app) record() error {
	if a.journal == "" {
		return nil
	}
	file, err := os.OpenFile(a.journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	_, err = fmt.Fprintln(file, a.version)
	return errors.Join(err, file.Close())
}

// serve answers until ctx ends and returns errCrash if that was the cause.
func (a app) serve(ctx context.Context, address string, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on %s\n", listener.Addr())
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	server := &http.Server{Handler: a.handler(end), ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, errCrash) {
		return cause
	}
	return nil
}

func (a app) handler(end context.CancelCauseFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, a.version) })
	mux.HandleFunc("/env", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, environment()) })
	mux.HandleFunc("/journal", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, a.journal) })
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { end(errCrash) })
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if now := time.Now(); now.Before(a.readyAt) || !a.failingAt.IsZero() && !now.Before(a.failingAt) {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

func environment() string { return strings.Join(slices.Sorted(slices.Values(os.Environ())), "\n") }

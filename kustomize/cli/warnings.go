package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// warned are flags whose clients pass on the warnings of the API server.
type warned struct {
	genericclioptions.RESTClientGetter
	to rest.WarningHandlerWithContext
}

// ToRESTConfig returns the configuration of the flags, with the handler of warnings. This field wins over WarningHandler, which
// a client may set.
func (w warned) ToRESTConfig() (*rest.Config, error) {
	config, err := w.RESTClientGetter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = w.to
	return config, nil
}

// warnings prints each warning of the API server once, as kubectl does, and adds it to the report. All clients of a command
// share one: the same object is often written by several of them.
type warnings struct {
	out    io.Writer
	report *Report

	lock sync.Mutex
	seen map[string]bool
}

// fromServer is the code of warnings that an API server sends. Proxies send others about caches.
const fromServer = 299

// HandleWarningHeaderWithContext takes a warning of an answer.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != fromServer || text == "" {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.seen[text] {
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[text] = true
	start := ""
	if file, isFile := w.out.(*os.File); isFile && term.IsTerminal(int(file.Fd())) {
		start = "\r\x1b[K" // the line of progress, which is written again
	}
	fmt.Fprintf(w.out, "%sWarning: %s\n", start, text)
	w.report.Warn(text)
}

package testenv

import (
	"strings"
	"sync"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// Errors are the errors that client-go logs.
type Errors struct {
	mu    sync.Mutex
	lines []string
}

// Capture starts to record the errors. TestMain calls it, because a process sets its logger once, before the first line
// is logged.
func (e *Errors) Capture() {
	klog.SetLogger(funcr.New(func(_, line string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if strings.Contains(line, `"error"=`) { // only errors have it
			e.lines = append(e.lines, line)
		}
	}, funcr.Options{}))
}

// About returns the errors whose line contains the text.
func (e *Errors) About(text string) (found []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, line := range e.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

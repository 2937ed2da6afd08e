package managers

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// interrupted is what controller-runtime says once for each controller that still began when the process was asked to end,
// such as one that waited for its cache.
const interrupted = "error received after stop sequence was engaged"

// Repeated is an error that a log has several times.
type Repeated struct {
	// Times is how often.
	Times int
	// Last is its cause as logged last.
	Last string
}

// Errors counts the errors in the log by where they come from and what they say, without those of controllers that were
// interrupted. A line that is no JSON, such as that of a panic, counts as an error, too.
func (m *Manager) Errors() (map[string]Repeated, error) {
	text, err := os.ReadFile(m.Log)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", m.Feature, err)
	}
	return errorsIn(string(text)), nil
}

// Working reports whether controllers have begun and their caches are filled: each one that has a source has workers, too.
func (m *Manager) Working() (bool, error) {
	text, err := os.ReadFile(m.Log)
	if err != nil {
		return false, fmt.Errorf("read the log of %s: %w", m.Feature, err)
	}
	return working(string(text)), nil
}

func working(log string) bool {
	begun, works := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(log) {
		var entry struct{ Msg, Controller string }
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		switch entry.Msg {
		case "Starting EventSource":
			begun[entry.Controller] = true
		case "Starting workers":
			works[entry.Controller] = true
		}
	}
	return len(begun) > 0 && maps.Equal(begun, works)
}

// lastLines is the end of the log.
func (m *Manager) lastLines() string {
	const most = 10
	text, err := os.ReadFile(m.Log)
	if err != nil {
		return err.Error()
	}
	lines := slices.Collect(strings.Lines(string(text)))
	return strings.Join(lines[max(0, len(lines)-most):], "")
}

func errorsIn(log string) map[string]Repeated {
	found := map[string]Repeated{}
	for line := range strings.Lines(log) {
		var entry struct{ Level, Logger, Msg, Controller, Error string }
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		switch err := json.Unmarshal([]byte(line), &entry); {
		case err != nil:
			found[line] = Repeated{Times: found[line].Times + 1}
		case entry.Level == "error" && entry.Msg != interrupted:
			origin := strings.Join([]string{entry.Logger, entry.Controller, entry.Msg}, " ")
			found[origin] = Repeated{Times: found[origin].Times + 1, Last: entry.Error}
		}
	}
	return found
}

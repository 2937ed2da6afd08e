package managers

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// interrupted is what controller-runtime says once for each controller that still began when the process was asked to end,
// such as one that waited for its cache.
const interrupted = "error received after stop sequence was engaged"

// Errors counts the errors in the log by where they come from and what they say, without those of controllers that were
// interrupted. A line that is no JSON, such as that of a panic, counts as an error, too.
func (m *Manager) Errors() (map[string]int, error) {
	text, err := os.ReadFile(m.Log)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", m.Feature, err)
	}
	return errorsIn(string(text)), nil
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

func errorsIn(log string) map[string]int {
	count := map[string]int{}
	for line := range strings.Lines(log) {
		var entry struct{ Level, Logger, Msg, Controller, Error string }
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		switch err := json.Unmarshal([]byte(line), &entry); {
		case err != nil:
			count[line]++
		case entry.Level == "error" && entry.Msg != interrupted:
			count[strings.Join([]string{entry.Logger, entry.Controller, entry.Msg}, " ")]++
		}
	}
	return count
}

package story

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Tutorial is a page that readers follow from its begin to its end.
type Tutorial struct {
	// Steps are its commands, in their order.
	Steps []Step
	// Files are those that it lets readers save, by name.
	Files map[string]string
}

// Step is a command of a page, and the output that the page shows after it.
type Step struct {
	Command, Output string
}

// ReadTutorial reads a page. Its commands are indented, each output is a block of code after its command, and each file follows
// a line "Save this as `NAME`:". A command without output is one of those that the test does not run, or a fault of the page.
func ReadTutorial(page string) (Tutorial, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return Tutorial{}, fmt.Errorf("read the tutorial: %w", err)
	}
	return parseTutorial(string(text))
}

func parseTutorial(text string) (Tutorial, error) {
	found := Tutorial{Files: map[string]string{}}
	for _, file := range regexp.MustCompile("(?ms)^Save this as `(\\S+)`:\n\n```yaml\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found.Files[file[1]] = file[2]
	}
	var wrong error
	for _, part := range regexp.MustCompile("(?ms)^ {4}([^\n]+)$|^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		command := part[1]
		language := part[2]
		output := part[3]
		last := len(found.Steps) - 1
		switch {
		case command != "":
			found.Steps = append(found.Steps, Step{Command: command})
		case language != "": // a file or an example
		case last < 0 || found.Steps[last].Output != "":
			wrong = errors.Join(wrong, fmt.Errorf("the page has an output without its command:\n%s", output))
		default:
			found.Steps[last].Output = output
		}
	}
	return found, wrong
}

// general has what differs from cluster to cluster and from run to run in an output of kubectl, and what stands for it.
func general() [][2]string {
	return [][2]string{
		{`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`, "UID"},
		{`\b\d+(\.\d+){3}\b`, "IP"},
		{`\b([a-z0-9-]+)-[bcdfghjklmnpqrstvwxz2456789]{5}\b`, "$1-POD"},
		{`(?m)[ \t]\d+[smhd](\d+[smh])?$`, " AGE"},
		{`[ \t]+`, " "},     // columns are as wide as the longest IP
		{`(?m) $`, ""},      // of a last column
		{`\A\n+|\n+\z`, ""}, // around all
	}
}

// General returns the output with general words for names of pods, UIDs, IPs and ages.
func General(output string) string {
	for _, rule := range general() {
		output = regexp.MustCompile(rule[0]).ReplaceAllString(output, rule[1])
	}
	return output
}

// Shell runs a command line in a folder, as a user of the cluster does, and returns all that it prints.
func (w World) Shell(t *testing.T, folder, line string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-c", line)
	command.Dir = folder
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Cluster.Kubeconfig(),
		"PATH="+strings.Join([]string{filepath.Dir(w.Cluster.Kubectl()), os.Getenv("PATH")}, string(os.PathListSeparator)))
	out, err := command.CombinedOutput()
	return string(out), err
}

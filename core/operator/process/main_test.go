package process

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
)

func TestExitCodesSayHowAProcessEnded(t *testing.T) {
	for name, c := range map[string]struct {
		read, run error
		code      int
		printed   string
		logged    []string
	}{
		"a signal": {logged: []string{`"level"=0 "msg"="a note"`}},
		"help":     {read: pflag.ErrHelp},
		"bad flag": {read: errors.New("unknown flag: --color"), code: 2, printed: "web-manager: unknown flag: --color\n"},
		"failure": {run: errors.New("no server"), code: 1, logged: []string{
			`"level"=0 "msg"="a note"`, `"msg"="Process ends" "error"="no server" "process"="web-manager"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var logged []string
			log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
			read := func(arguments []string, _ func(string) string) (Process, error) {
				assert.Equal(t, []string{"--color"}, arguments)
				return Process{Log: log, Notes: []string{"a note"}}, c.read
			}
			var printed strings.Builder
			code := start("web-manager", read, []string{"--color"}, &printed, func(Process) error { return c.run })
			assert.Equal(t, []any{c.code, c.printed}, []any{code, printed.String()})
			assert.Equal(t, c.logged, logged)
		})
	}
}

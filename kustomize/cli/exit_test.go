package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

func TestRunTellsHowItEnds(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	unreachable := &url.Error{Op: "Get", URL: "https://127.0.0.1:1/api", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	cases := []struct {
		name string
		args []string
		err  error
		want cli.Code
		says string
	}{
		{"done", nil, nil, cli.Done, ""},
		{"failed", nil, errors.New("read the catalog: broken"), cli.Failed, "error: read the catalog: broken\n"},
		{"no", nil, cli.NoErrorf("%d features are ill", 2), cli.NotSo, "error: 2 features are ill\n"},
		{"interrupted", nil, fmt.Errorf("wait: %w", context.Canceled), cli.Interrupted, "error: interrupted: wait: context canceled\n"},
		{"no, and all is said", nil, cli.NoErrorf(""), cli.NotSo, ""},
		{"an unknown flag", []string{"--nothing"}, nil, cli.Misused, "error: unknown flag: --nothing; see try --help\n"},
		{"an argument too many", []string{"one"}, nil, cli.Misused, `error: unknown command "one" for "try"; see try --help` + "\n"},
		{
			"no right", nil, fmt.Errorf("list pods: %w", apierrors.NewForbidden(pods, "", errors.New("no"))), cli.Failed,
			"error: list pods: pods is forbidden: no; ask an administrator of the cluster for this permission, or use other credentials with --context\n",
		},
		{
			"no right, in several lines", nil, fmt.Errorf("several:\n%w\nand more", apierrors.NewForbidden(pods, "", errors.New("no"))), cli.Failed,
			"error: several:\npods is forbidden: no\nand more\nask an administrator of the cluster for this permission, or use other credentials with --context\n",
		},
		{
			"no kubeconfig", nil, &url.Error{Op: "Get", URL: "http://localhost:8080/version?timeout=32s", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, cli.Failed,
			"error: no cluster is configured: set KUBECONFIG, --kubeconfig or --context\n",
		},
		{
			"no cluster", nil, unreachable, cli.Failed,
			"error: Get \"https://127.0.0.1:1/api\": dial: refused; the cluster cannot be reached: check the address of the API server in the kubeconfig\n",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var stderr bytes.Buffer
			root := &cobra.Command{
				Use:  "try",
				Args: cli.Arguments(cobra.NoArgs),
				RunE: func(*cobra.Command, []string) error { return c.err },
			}
			root.SetErr(&stderr)
			root.SetArgs(append([]string{}, c.args...))

			assert.Equal(t, c.want, cli.Run(t.Context(), root))
			assert.Equal(t, c.says, stderr.String())
		})
	}
}

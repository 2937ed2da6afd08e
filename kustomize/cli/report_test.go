package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// However a command ends, standard output has one document, with the verdict; the lines for people go to standard error.
func TestAReportHasTheVerdict(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx     context.Context
		err     error
		verdict string
		code    cli.Code
	}{
		"done":        {t.Context(), nil, "done", cli.Done},
		"failed":      {t.Context(), errors.New("no"), "failed", cli.Failed},
		"misused":     {t.Context(), cli.MisuseErrorf("no"), "misused", cli.Misused},
		"negative":    {t.Context(), cli.NoErrorf("no"), "negative", cli.NotSo},
		"interrupted": {stopped, errors.New("no"), "interrupted", cli.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			var out, lines bytes.Buffer
			streams := genericiooptions.IOStreams{Out: &out, ErrOut: &lines}

			err := cli.Reporting(c.ctx, nil, streams, cli.JSON, &cli.Report{Command: "try", DryRun: true}, func(_ genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams, r *cli.Report) error {
				fmt.Fprint(streams.Out, "progress")
				r.Step("web", "begin", "", nil)
				r.Step("web", "end", "", c.err)
				r.Warn("slow")
				return c.err
			})

			assert.Equal(t, c.code, cli.CodeOf(err))
			assert.Equal(t, "progress", lines.String())
			var report cli.Report
			require.NoError(t, json.Unmarshal(out.Bytes(), &report), out.String())
			assert.Equal(t, c.verdict, report.Verdict)
			assert.Equal(t, c.code, report.ExitCode)
			assert.True(t, report.DryRun)
			assert.Equal(t, c.err == nil, report.Error == "")
			assert.Equal(t, []string{"slow"}, report.Warnings)
			assert.Len(t, report.Steps, 2)
			assert.Contains(t, out.String(), `"objects": []`, "a list without members is a list")
		})
	}
}

func TestWithoutOutputThereIsNoReport(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, cli.Reporting(t.Context(), nil, genericiooptions.IOStreams{Out: &out}, "", &cli.Report{}, func(_ genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams, r *cli.Report) error {
		r.Warn("nobody reads it")
		r.Add(cli.ReportedObject{})
		fmt.Fprint(streams.Out, "progress")
		return nil
	}))
	assert.Equal(t, "progress", out.String())
}

// A report has the same fields and values in each format.
func TestReportsAreJSONOrYAML(t *testing.T) {
	printed := map[cli.Output]string{}
	for _, output := range []cli.Output{cli.JSON, cli.YAML} {
		var out bytes.Buffer
		streams := genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}
		require.NoError(t, cli.Reporting(t.Context(), nil, streams, output, &cli.Report{Command: "try"}, func(_ genericclioptions.RESTClientGetter, _ genericiooptions.IOStreams, r *cli.Report) error {
			r.Add(cli.ReportedObject{APIVersion: "v1", Kind: "Node", Name: "1", Action: cli.Configured, Message: "a <b>\nc: d"})
			return nil
		}))
		printed[output] = out.String()
	}
	assert.YAMLEq(t, printed[cli.JSON], printed[cli.YAML])
	assert.Contains(t, printed[cli.YAML], "objects:\n- action: configured\n  apiVersion: v1\n")
	assert.Contains(t, printed[cli.YAML], "warnings: []\n", "a list without members is a list")
}

// The flag refuses a format that does not exist, with the formats that do.
func TestOutputIsAKnownFormat(t *testing.T) {
	for text, want := range map[string]cli.Output{"": "", "json": cli.JSON, "yaml": cli.YAML} {
		var output cli.Output
		set := pflag.NewFlagSet("try", pflag.ContinueOnError)
		output.AddTo(set)
		require.NoError(t, set.Parse([]string{"-o", text}))
		assert.Equal(t, want, output)
	}
	var output cli.Output
	set := pflag.NewFlagSet("try", pflag.ContinueOnError)
	output.AddTo(set)
	err := set.Parse([]string{"--output=JSON"})
	require.ErrorContains(t, err, `invalid argument "JSON" for "-o, --output" flag: use json or yaml, or omit it for text`)
	assert.Equal(t, cli.Misused, cli.CodeOf(err))
}

// What an apply did follows from the stored objects before and after it.
func TestAppliedObjectsAreReported(t *testing.T) {
	stored := func(version, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "resourceVersion": version}, "data": map[string]any{"key": value},
		}}
	}
	for name, c := range map[string]struct {
		before, after *unstructured.Unstructured
		err           error
		want          cli.Action
		message       string
	}{
		"new":     {nil, stored("1", "x"), nil, cli.Created, ""},
		"other":   {stored("1", "x"), stored("2", "y"), nil, cli.Configured, ""},
		"same":    {stored("1", "x"), stored("2", "x"), nil, cli.Unchanged, ""},
		"refused": {stored("1", "x"), nil, errors.New("a policy refuses"), cli.Refused, "a policy refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			report, none := &cli.Report{}, (*cli.Report)(nil)
			assert.Equal(t, c.want, report.Applied("web", stored("", "z"), c.before, c.after, c.err))
			assert.Equal(t, []cli.ReportedObject{{Feature: "web", APIVersion: "v1", Kind: "ConfigMap", Name: "a", Action: c.want, Message: c.message}}, report.Objects)
			assert.Equal(t, c.want, none.Applied("web", stored("", "z"), c.before, c.after, c.err), "also without a report")
		})
	}
}

// A command that reaches an object twice tells what became of it in the whole.
func TestAnObjectIsReportedOnce(t *testing.T) {
	for name, c := range map[string]struct{ first, second, want cli.Action }{
		"created, applied again": {cli.Created, cli.Unchanged, cli.Created},
		"created, then changed":  {cli.Created, cli.Configured, cli.Created},
		"looked at, changed":     {cli.Unchanged, cli.Configured, cli.Configured},
		"changed, then removed":  {cli.Configured, cli.Removed, cli.Removed},
		"refused at the end":     {cli.Created, cli.Refused, cli.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			var report cli.Report
			report.Add(cli.ReportedObject{Kind: "Service", Name: "a", Action: c.first})
			report.Add(cli.ReportedObject{Kind: "Service", Name: "a", Action: c.second})
			report.Add(cli.ReportedObject{Kind: "Service", Name: "b", Action: cli.Removed})
			require.Len(t, report.Objects, 2)
			assert.Equal(t, c.want, report.Objects[0].Action)
		})
	}
}

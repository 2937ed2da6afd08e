package cli

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// Report is what a command did to a cluster, for programs. A nil Report takes everything and keeps nothing.
type Report struct {
	// Command is the name of the command, DryRun that it wrote nothing: actions are those that it would take.
	Command string `json:"command"`
	DryRun  bool   `json:"dryRun"`
	// Verdict is how the command ended, as ExitCode does: done, failed, misused, negative or interrupted.
	Verdict  string `json:"verdict"`
	ExitCode Code   `json:"exitCode"`
	// Error is the error of a command that did not end with done.
	Error string `json:"error,omitempty"`
	// Objects are in the order in which they were reached, Steps in the order in which they ended.
	Objects []ReportedObject `json:"objects"`
	Steps   []ReportedStep   `json:"steps"`
	// Warnings are facts to know, Left are objects that stay and work that is not done.
	Warnings []string `json:"warnings"`
	Left     []string `json:"left"`

	lock sync.Mutex
}

// Action is what a command did to an object.
type Action string

// The actions. Refused means that the command or the cluster did not permit the change.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Removed    Action = "removed"
	Refused    Action = "refused"
)

// ReportedObject is an object that a command has reached.
type ReportedObject struct {
	Feature    string `json:"feature,omitempty"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Action     Action `json:"action"`
	// Message is the cause of a refusal, or how the object differs.
	Message string `json:"message,omitempty"`
}

// The results of steps.
const (
	stepDone    = "done"
	stepFailed  = "failed"
	stepPlanned = "planned"
)

// ReportedStep is a step of a command: done, failed or, in a dry run, planned.
type ReportedStep struct {
	Feature string `json:"feature,omitempty"`
	Name    string `json:"name"`
	Result  string `json:"result"`
	Message string `json:"message,omitempty"`
}

// change changes the cluster that flags name. It writes lines to streams, and adds what it did to a report.
type change = func(genericclioptions.RESTClientGetter, genericiooptions.IOStreams, *Report) error

// Reporting runs a command that changes a cluster. With an output format its lines go to standard error, and its report goes to
// standard output, however it ends. Warnings of the API server go to standard error and to the report.
func Reporting(
	ctx context.Context, flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams, output Output, report *Report, run change,
) error {
	if output == "" {
		return run(warned{flags, &warnings{out: streams.ErrOut}}, streams, nil)
	}
	report.Objects = []ReportedObject{}
	report.Steps = []ReportedStep{}
	report.Warnings = []string{}
	report.Left = []string{}
	lines := streams
	lines.Out = streams.ErrOut
	err := interrupted(ctx, run(warned{flags, &warnings{out: streams.ErrOut, report: report}}, lines, report))
	report.end(err)
	if wrong := output.Print(streams.Out, report); wrong != nil && err == nil {
		return wrong
	}
	return err
}

func (r *Report) end(err error) {
	r.ExitCode = CodeOf(err)
	r.Verdict = map[Code]string{
		Done: "done", Failed: "failed", Misused: "misused", NotSo: "negative", Interrupted: "interrupted",
	}[r.ExitCode]
	if err != nil {
		r.Error = Explain(err)
	}
}

// Object adds that something was done to an object, with the lines that explain it.
func (r *Report) Object(feature string, action Action, object *unstructured.Unstructured, message string) {
	r.Add(ReportedObject{
		Feature:    feature,
		APIVersion: object.GetAPIVersion(),
		Kind:       object.GetKind(),
		Namespace:  object.GetNamespace(),
		Name:       object.GetName(),
		Action:     action,
		Message:    message,
	})
}

// Applied adds what an apply did to an object, and returns it. Before and after are the stored objects: before is nil for an object
// that did not exist, and an error means that the object was refused.
func (r *Report) Applied(feature string, object, before, after *unstructured.Unstructured, err error) Action {
	action, message := Unchanged, ""
	switch {
	case err != nil:
		action, message = Refused, err.Error()
	case before == nil:
		action = Created
	case len(apply.Diff(before, after)) > 0:
		action = Configured
	}
	r.Object(feature, action, object, message)
	return action
}

// Add adds that something was done to an object. An object is in a report once: that it was not changed again hides nothing,
// and one that was created stays so when it is configured later.
func (r *Report) Add(object ReportedObject) {
	if r == nil {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	for i := range r.Objects {
		have := &r.Objects[i]
		if have.APIVersion != object.APIVersion || have.Kind != object.Kind || have.Namespace != object.Namespace || have.Name != object.Name {
			continue
		}
		if object.Action != Unchanged && (have.Action != Created || object.Action != Configured) {
			*have = object
		}
		return
	}
	r.Objects = append(r.Objects, object)
}

// Step adds that a step has ended, with its result or its error.
func (r *Report) Step(feature, name, message string, err error) {
	step := ReportedStep{
		Feature: feature,
		Name:    name,
		Result:  stepDone,
		Message: message,
	}
	if err != nil {
		step.Result = stepFailed
		step.Message = err.Error()
	}
	r.step(step)
}

// Plan adds a step that a run would do.
func (r *Report) Plan(feature, name string) {
	r.step(ReportedStep{Feature: feature, Name: name, Result: stepPlanned})
}

func (r *Report) step(step ReportedStep) {
	if r == nil {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.Steps = append(r.Steps, step)
}

// Warn adds a warning.
func (r *Report) Warn(text string) {
	if r == nil {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.Warnings = append(r.Warnings, text)
}

// Leave adds an object that stays, or work that is not done.
func (r *Report) Leave(texts ...string) {
	if r == nil {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.Left = append(r.Left, texts...)
}

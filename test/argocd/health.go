package argocd

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize"
)

// healthKey and actionKey are the prefixes of keys in Argo CD's ConfigMap.
const (
	healthKey = "resource.customizations.health."
	actionKey = "resource.customizations.actions."
)

// Health is what Argo CD shows of an object.
type Health struct {
	// Status is Healthy, Progressing, Degraded or Suspended.
	Status string `json:"status"`
	// Message is the reason.
	Message string `json:"message"`
}

// Checks returns the shipped health checks by group and kind.
func Checks() (map[schema.GroupKind]string, error) { return shipped(healthKey) }

// shipped returns the values of the keys with a prefix, by group and kind.
func shipped(prefix string) (map[schema.GroupKind]string, error) {
	text, err := kustomize.Files.ReadFile("argocd/health.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the checks: %w", err)
	}
	var part corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &part); err != nil {
		return nil, fmt.Errorf("read the checks: %w", err)
	}
	found := map[schema.GroupKind]string{}
	for name, script := range part.Data {
		if !strings.HasPrefix(name, healthKey) && !strings.HasPrefix(name, actionKey) {
			return nil, fmt.Errorf("%s is no key of Argo CD", name)
		}
		rest, has := strings.CutPrefix(name, prefix)
		if group, kind, _ := strings.Cut(rest, "_"); has {
			found[schema.GroupKind{Group: group, Kind: kind}] = script
		}
	}
	return found, nil
}

// Evaluate runs the script on the object, which is JSON as encoding/json decodes it.
func Evaluate(script string, object map[string]any) (Health, error) {
	answer, err := evaluate(script, object)
	if err != nil {
		return Health{}, err
	}
	return Health{Status: text(answer, "status"), Message: text(answer, "message")}, nil
}

// evaluate returns the table that a script answers with.
func evaluate(script string, object map[string]any) (*lua.LTable, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	// Argo CD opens these, and of the last one the functions of time. The first one knows those that follow it.
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable},
		{lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath}, {lua.OsLibName, lua.OpenOs},
	} {
		state.Push(state.NewFunction(library.open))
		state.Push(lua.LString(library.name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(script); err != nil {
		return nil, fmt.Errorf("run the script: %w", err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, errors.New("the script returns no table")
	}
	return answer, nil
}

func text(table *lua.LTable, name string) string {
	s, _ := table.RawGetString(name).(lua.LString)
	return string(s)
}

func value(state *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := state.NewTable()
		for name, member := range v {
			table.RawSetString(name, value(state, member))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, member := range v {
			table.Append(value(state, member))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

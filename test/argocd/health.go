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

// key is the prefix of the keys of health checks in Argo CD's ConfigMap.
const key = "resource.customizations.health."

// Health is what Argo CD shows of an object.
type Health struct {
	// Status is Healthy, Progressing, Degraded or Suspended.
	Status string
	// Message is the reason.
	Message string
}

// Checks returns the shipped scripts by group and kind.
func Checks() (map[schema.GroupKind]string, error) {
	text, err := kustomize.Files.ReadFile("argocd/health.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the checks: %w", err)
	}
	var part corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &part); err != nil {
		return nil, fmt.Errorf("read the checks: %w", err)
	}
	checks := map[schema.GroupKind]string{}
	for name, script := range part.Data {
		group, kind, found := strings.Cut(strings.TrimPrefix(name, key), "_")
		if !found || !strings.HasPrefix(name, key) {
			return nil, fmt.Errorf("%s is no key of a health check", name)
		}
		checks[schema.GroupKind{Group: group, Kind: kind}] = script
	}
	return checks, nil
}

// Evaluate runs the script on the object, which is JSON as encoding/json decodes it.
func Evaluate(script string, object map[string]any) (Health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true}) // Argo CD opens these and a part of os
	defer state.Close()
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath} {
		state.Push(state.NewFunction(open))
		state.Call(0, 0)
	}
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(script); err != nil {
		return Health{}, fmt.Errorf("run the check: %w", err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return Health{}, errors.New("the check returns no table")
	}
	return Health{Status: text(answer, "status"), Message: text(answer, "message")}, nil
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

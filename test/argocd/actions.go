package argocd

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Actions are what users can have Argo CD do to an object.
type Actions struct {
	// Discovery is the script that tells which actions there are, and which of them are disabled.
	Discovery string `json:"discovery.lua"`
	// Definitions are the actions.
	Definitions []Action `json:"definitions"`
}

// Action is a script that changes the object.
type Action struct {
	Name   string `json:"name"`
	Script string `json:"action.lua"`
}

// AllActions returns the shipped actions by group and kind.
func AllActions() (map[schema.GroupKind]Actions, error) {
	texts, err := shipped(actionKey)
	if err != nil {
		return nil, err
	}
	all := map[schema.GroupKind]Actions{}
	for kind, text := range texts {
		var actions Actions
		if err := yaml.UnmarshalStrict([]byte(text), &actions); err != nil {
			return nil, fmt.Errorf("read the actions of %s: %w", kind, err)
		}
		all[kind] = actions
	}
	return all, nil
}

// Enabled returns for each action whether users can choose it.
func (a Actions) Enabled(object map[string]any) (map[string]bool, error) {
	answer, err := evaluate(a.Discovery, object)
	if err != nil {
		return nil, err
	}
	enabled := map[string]bool{}
	answer.ForEach(func(name, fields lua.LValue) {
		table, _ := fields.(*lua.LTable)
		enabled[name.String()] = table == nil || !lua.LVAsBool(table.RawGetString("disabled"))
	})
	return enabled, nil
}

// Do returns the object after an action.
func (a Actions) Do(name string, object map[string]any) (map[string]any, error) {
	for _, action := range a.Definitions {
		if action.Name != name {
			continue
		}
		answer, err := evaluate(action.Script, object)
		if err != nil {
			return nil, err
		}
		after, _ := plain(answer).(map[string]any)
		return after, nil
	}
	return nil, fmt.Errorf("there is no action %s", name)
}

// plain returns a value as encoding/json decodes it; an empty table is a map.
func plain(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LBool:
		return bool(v)
	case lua.LNumber:
		return float64(v)
	case *lua.LTable:
		if v.Len() > 0 {
			var list []any
			v.ForEach(func(_, member lua.LValue) { list = append(list, plain(member)) })
			return list
		}
		fields := map[string]any{}
		v.ForEach(func(name, member lua.LValue) { fields[name.String()] = plain(member) })
		return fields
	}
	return nil
}

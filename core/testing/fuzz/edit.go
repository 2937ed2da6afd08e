package fuzz

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// longest is how much of a script is used: lists and texts in texts may double with each edit.
const longest = 128

// editor edits an object as a script has it. Each decision takes a byte of the script, and a script that has ended decides
// for the first choice.
type editor struct {
	script []byte
	words  []string
}

// edit returns the object with the changes of the script, in the version and of the kind that it has. A schema, unless it is nil,
// has the fields that may be added.
func edit(object Object, schema *spec.Schema, script []byte) Object {
	e := &editor{script: script[:min(len(script), longest)], words: words(object)}
	object = runtime.DeepCopyJSON(object)
	version, kind := object["apiVersion"], object["kind"]
	for len(e.script) > 0 {
		if changed, ok := e.change(object, schema).(Object); ok {
			object = changed
		}
		if object["apiVersion"], object["kind"] = version, kind; version == nil {
			delete(object, "apiVersion")
		}
		if kind == nil {
			delete(object, "kind")
		}
	}
	return object
}

// choose returns a number below n, or 0.
func (e *editor) choose(n int) int {
	if len(e.script) == 0 || n <= 1 {
		return 0
	}
	choice := int(e.script[0])
	e.script = e.script[1:]
	if n > 256 && len(e.script) > 0 {
		choice = choice<<8 + int(e.script[0])
		e.script = e.script[1:]
	}
	return choice % n
}

// change returns the value with one change; nil means that it is removed. One in sixteen fields on the way is removed.
func (e *editor) change(value any, schema *spec.Schema) any {
	if e.choose(16) == 0 {
		return nil
	}
	object, isObject := value.(Object)
	list, isList := value.([]any)
	switch {
	case isObject || is(schema, "object"):
		return e.changeMember(object, schema)
	case isList || is(schema, "array"):
		return e.changeItem(list, schema)
	}
	if within, ok := inText(value); ok {
		return e.changeText(within)
	}
	return e.leaf(value, schema)
}

// inText returns the object or list that a text holds as JSON, as many annotations do.
func inText(value any) (within any, ok bool) {
	text, isText := value.(string)
	if !isText || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return nil, false
	}
	return within, utiljson.Unmarshal([]byte(text), &within) == nil
}

func (e *editor) changeText(within any) any {
	changed, err := json.Marshal(e.change(within, nil))
	if err != nil {
		return nil
	}
	return string(changed)
}

func (e *editor) changeMember(object Object, schema *spec.Schema) any {
	names := slices.Collect(maps.Keys(object))
	if schema != nil {
		names = slices.AppendSeq(names, maps.Keys(schema.Properties))
	}
	if schema == nil || len(schema.Properties) == 0 {
		names = append(names, e.words[e.choose(len(e.words))])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	name := names[e.choose(len(names))]
	if object == nil {
		object = Object{}
	}
	if changed := e.change(object[name], member(schema, name)); changed == nil {
		delete(object, name)
	} else {
		object[name] = changed
	}
	return object
}

// changeItem changes, removes, adds or repeats an item.
func (e *editor) changeItem(list []any, schema *spec.Schema) any {
	var items *spec.Schema
	if schema != nil && schema.Items != nil {
		items = schema.Items.Schema
	}
	i := e.choose(len(list) + 2)
	switch {
	case i < len(list):
		if list[i] = e.change(list[i], items); list[i] == nil {
			list = slices.Delete(list, i, i+1)
		}
	case i > len(list) && len(list) > 0:
		list = append(list, runtime.DeepCopyJSONValue(list[e.choose(len(list))]))
	default:
		if added := e.change(nil, items); added != nil {
			list = append(list, added)
		}
	}
	if list == nil {
		return []any{}
	}
	return list
}

// leaf returns another value of the kind that the schema asks for or, without a schema, that the value has.
func (e *editor) leaf(value any, schema *spec.Schema) any {
	_, isNumber := value.(int64)
	_, isText := value.(string)
	flag, isFlag := value.(bool)
	switch {
	case schema != nil && len(schema.Enum) > 0:
		return schema.Enum[e.choose(len(schema.Enum))]
	case is(schema, "boolean"), untyped(schema) && isFlag:
		return !flag
	case is(schema, "integer"):
		return e.number()
	case untyped(schema) && isNumber:
		return e.amount()
	case is(schema, "string"), untyped(schema) && isText:
		return e.words[e.choose(len(e.words))]
	}
	switch e.choose(4) { // a number or text, or anything
	case 0:
		return e.amount()
	case 1:
		return []any{}
	case 2:
		return Object{}
	}
	return e.words[e.choose(len(e.words))]
}

func (e *editor) number() int64 {
	numbers := []int64{0, 1, -1, 2, 3, 10, 30, 100, 101, 1 << 20, 1<<31 - 1, 1 << 31, -1 << 31, 1<<63 - 1, -1 << 63}
	return numbers[e.choose(len(numbers))]
}

// amount returns a number of 32 bits: those of a number or text, of which the schema names no size.
func (e *editor) amount() int64 { return min(max(e.number(), math.MinInt32), math.MaxInt32) }

func is(schema *spec.Schema, kind string) bool { return schema != nil && schema.Type.Contains(kind) }

func untyped(schema *spec.Schema) bool { return schema == nil || len(schema.Type) == 0 }

// member returns the schema of a member, nil if it is unknown.
func member(schema *spec.Schema, name string) *spec.Schema {
	if schema == nil {
		return nil
	}
	if of, ok := schema.Properties[name]; ok {
		return &of
	}
	if schema.AdditionalProperties != nil {
		return schema.AdditionalProperties.Schema
	}
	return nil
}

// words returns the texts that scripts write: those of the object, which may name each other, and texts that parsers
// stumble over.
func words(object Object) []string {
	all := []string{
		"", "a", "b", "main", "0", "1", "-1", "007", "2147483648", "99999999999999999999", "1e9", "0x10", " 1", "50%", "0%", "100%", "101%", "-5%", "%", "1.5",
		"1s", "-1s", "1h1h", "100m", "1Gi", "-1Gi", "true", "True", "null", "{}", "[]", `""`, `{"a":{"b":[null]}}`, `[{}]`, "a=b", "a,b", ",", "a in (b)", "*",
		"2026-01-02T03:04:05Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "nginx", "nginx:1.25", "a.b/c/d:e", "nginx@sha256:0", ":", "/", "a/b", "a/b/c", "v1", "apps/v1",
		"@daily", "@every 1s", "* * * * *", "CRON_TZ=UTC * * * * *", "Europe/Berlin", "RollingUpdate", "OnDelete", "é", "\x00", "A_B", "a.b", "--", "kruise.io/a",
	}
	var collect func(value any)
	collect = func(value any) {
		switch value := value.(type) {
		case Object:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				all = append(all, name)
				collect(value[name])
			}
		case []any:
			for _, item := range value {
				collect(item)
			}
		case string:
			all = append(all, value)
		}
	}
	collect(object)
	slices.Sort(all)
	return slices.Compact(all)
}

// clone returns a copy of the object as the decoder of the API server reads it.
func clone(raw []byte) Object {
	var object Object
	_ = utiljson.Unmarshal(raw, &object) // it was decoded before
	return object
}

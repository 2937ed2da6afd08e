package charts

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// node is a value of a manifest, and the values that it has where options are chosen.
type node struct {
	// when is the condition under which the value is there; empty for always.
	when string
	// One of these is set. value is the same whatever is chosen; raw are lines of a template.
	value  any
	fields map[string]*node
	items  []*node
	choice []alternative
	raw    string
}

// alternative is a value that holds under a condition. Of several that hold, the last counts. The first one has no condition.
type alternative struct {
	when  string
	value any
}

// variant is a value as an option leaves it; absent is one that the option removes or does not add.
type variant struct {
	when  string
	value any
}

// absent stands for no value.
type absent struct{}

// merge returns a node that is base, and each of the variants where its option is chosen alone. Where several change the same
// scalar, the last one counts; additions to a list come in their order.
func merge(base any, variants []variant) *node {
	variants = slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return reflect.DeepEqual(v.value, base) })
	if len(variants) == 0 {
		return &node{value: base}
	}
	if base == (any)(absent{}) {
		return mergeAdded(variants)
	}
	var removed []string
	kept := slices.DeleteFunc(slices.Clone(variants), func(v variant) bool {
		if v.value == (any)(absent{}) {
			removed = append(removed, v.when)
			return true
		}
		return false
	})
	merged := mergePresent(base, kept)
	if len(removed) > 0 {
		merged.when = not(anyOf(removed))
	}
	return merged
}

// mergeAdded merges values that options add.
func mergeAdded(variants []variant) *node {
	var conditions []string
	same := true
	for _, v := range variants {
		conditions = append(conditions, v.when)
		same = same && reflect.DeepEqual(v.value, variants[0].value)
	}
	merged := &node{value: variants[0].value}
	if !same {
		switch variants[0].value.(type) {
		case map[string]any:
			merged = mergePresent(map[string]any{}, variants)
		case []any:
			merged = mergePresent([]any{}, variants)
		default:
			merged = mergePresent(variants[0].value, variants)
		}
	}
	merged.when = anyOf(conditions)
	return merged
}

// mergePresent merges values that are there in every variant.
func mergePresent(base any, variants []variant) *node {
	if len(variants) == 0 {
		return &node{value: base}
	}
	switch base := base.(type) {
	case map[string]any:
		if allAre[map[string]any](variants) {
			return mergeMaps(base, variants)
		}
	case []any:
		if allAre[[]any](variants) {
			return mergeLists(base, variants)
		}
	}
	merged := &node{choice: []alternative{{value: base}}}
	for _, v := range variants {
		merged.choice = append(merged.choice, alternative(v))
	}
	return merged
}

func allAre[T any](variants []variant) bool {
	return !slices.ContainsFunc(variants, func(v variant) bool { _, is := v.value.(T); return !is })
}

func mergeMaps(base map[string]any, variants []variant) *node {
	keys := maps.Clone(base)
	for _, v := range variants {
		maps.Copy(keys, v.value.(map[string]any)) //nolint:forcetypeassert // all are
	}
	merged := &node{fields: map[string]*node{}}
	for key := range keys {
		var children []variant
		for _, v := range variants {
			children = append(children, variant{v.when, valueOf(v.value.(map[string]any), key)}) //nolint:forcetypeassert // all are
		}
		merged.fields[key] = merge(valueOf(base, key), children)
	}
	return merged
}

func valueOf(fields map[string]any, key string) any {
	if value, has := fields[key]; has {
		return value
	}
	return absent{}
}

// mergeLists merges lists item by item. An insertion stands before the item of base that follows it.
func mergeLists(base []any, variants []variant) *node {
	merged := &node{items: []*node{}}
	alignments := make([]alignment, len(variants))
	for i, v := range variants {
		alignments[i] = align(base, v.value.([]any)) //nolint:forcetypeassert // all are
	}
	for at := 0; at <= len(base); at++ {
		for i, v := range variants {
			for _, value := range alignments[i].inserted[at] {
				merged.items = append(merged.items, &node{value: value, when: v.when})
			}
		}
		if at == len(base) {
			break
		}
		var children []variant
		for i, v := range variants {
			children = append(children, variant{v.when, alignments[i].instead[at]})
		}
		merged.items = append(merged.items, merge(base[at], children))
	}
	return merged
}

// alignment says how a list differs from the one that it is compared with.
type alignment struct {
	// instead has the item in the place of each item, or absent; inserted the items before each, and at the end.
	instead  []any
	inserted map[int][]any
}

// align compares lists by their longest common subsequence. Items with the same name are one item.
func align(base, list []any) alignment {
	common := make([][]int, len(base)+1)
	for i := range common {
		common[i] = make([]int, len(list)+1)
	}
	for i, item := range slices.Backward(base) {
		for j, other := range slices.Backward(list) {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if sameItem(item, other) {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	found := alignment{instead: make([]any, len(base)), inserted: map[int][]any{}}
	i, j := 0, 0
	for i < len(base) || j < len(list) {
		switch {
		case i < len(base) && j < len(list) && sameItem(base[i], list[j]):
			found.instead[i] = list[j]
			i, j = i+1, j+1
		case j == len(list) || i < len(base) && common[i+1][j] >= common[i][j+1]:
			found.instead[i] = absent{}
			i++
		default:
			found.inserted[i] = append(found.inserted[i], list[j])
			j++
		}
	}
	return found
}

// sameItem reports whether items of two lists are one item, perhaps changed.
func sameItem(a, b any) bool {
	first, isFirst := a.(map[string]any)
	second, isSecond := b.(map[string]any)
	if isFirst && isSecond {
		for _, key := range []string{"name", "mountPath", "containerPort"} {
			if first[key] != nil && first[key] == second[key] {
				return true
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// expand makes fields of the value of a map.
func (n *node) expand() {
	if n.fields != nil {
		return
	}
	values, _ := n.value.(map[string]any)
	n.fields, n.value = map[string]*node{}, nil
	for key, value := range values {
		n.fields[key] = &node{value: value}
	}
}

// open returns the field of a map, and makes it if there is none.
func (n *node) open(key string) *node {
	n.expand()
	if n.fields[key] == nil {
		n.fields[key] = &node{fields: map[string]*node{}}
	}
	return n.fields[key]
}

// set replaces the field of a map.
func (n *node) set(key string, field *node) {
	n.expand()
	n.fields[key] = field
}

// openItem returns the item of a list that has a name.
func (n *node) openItem(name string) (*node, error) {
	if n.items == nil {
		values, _ := n.value.([]any)
		n.value = nil
		for _, value := range values {
			n.items = append(n.items, &node{value: value})
		}
	}
	for _, item := range n.items {
		if item.open("name").value == name {
			return item, nil
		}
	}
	return nil, fmt.Errorf("find item %s of a list", name)
}

// not returns the condition that another one does not hold.
func not(condition string) string { return "(not " + condition + ")" }

// anyOf returns the condition that one of several holds.
func anyOf(conditions []string) string { return joined("or", conditions) }

// allOf returns the condition that all of several hold; empty ones hold always.
func allOf(conditions ...string) string {
	return joined("and", slices.DeleteFunc(conditions, func(c string) bool { return c == "" }))
}

func joined(word string, conditions []string) string {
	switch len(conditions) {
	case 0:
		return ""
	case 1:
		return conditions[0]
	}
	return "(" + word + " " + strings.Join(conditions, " ") + ")"
}

package docs

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const flagsPage = "docs/reference/flags.md"

// ofFlag are the methods of a flag set that define a flag.
var ofFlag = regexp.MustCompile(`^(String|StringSlice|StringArray|Bool|Int|Int8|Int32|Int64|Float32|Float64|Duration)?(Var)?P?$`)

// definition is a flag as the code defines it. Unknown is true for a default that only the running process knows.
type definition struct {
	value   string
	unknown bool
}

// flagsIn returns the flags that the files of a folder define.
func flagsIn(t *testing.T, folder string) map[string]definition {
	t.Helper()
	found := map[string]definition{}
	constants := map[string]ast.Expr{}
	var files []source
	for _, file := range sources(t) {
		if path.Dir(file.path) != folder {
			continue
		}
		files = append(files, file)
		ast.Inspect(file.File, func(node ast.Node) bool {
			if values, ok := node.(*ast.ValueSpec); ok && len(values.Names) == len(values.Values) {
				for i, name := range values.Names {
					constants[name.Name] = values.Values[i]
				}
			}
			return true
		})
	}
	require.NotEmpty(t, files, folder)
	for _, file := range files {
		ast.Inspect(file.File, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !ofFlag.MatchString(method.Sel.Name) {
				return true
			}
			at := 0
			if strings.Contains(method.Sel.Name, "Var") {
				at = 1
			}
			name := plain(call.Args[at])
			if name == gap {
				return true
			}
			if strings.HasSuffix(method.Sel.Name, "P") {
				at++ // the short form
			}
			if method.Sel.Name == "Var" || method.Sel.Name == "VarP" {
				found[name] = definition{unknown: true}
			} else {
				value, known := evaluate(call.Args[at+1], constants)
				found[name] = definition{value: value, unknown: !known}
			}
			return true
		})
	}
	return found
}

// evaluate returns the value of an expression as a page writes it, if it is one of literals and constants of the package.
func evaluate(expression ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch node := expression.(type) {
	case *ast.BasicLit:
		if node.Kind == token.STRING {
			text, err := strconv.Unquote(node.Value)
			return text, err == nil
		}
		return node.Value, true
	case *ast.UnaryExpr:
		text, known := evaluate(node.X, constants)
		return node.Op.String() + text, known
	case *ast.BinaryExpr:
		number, known := evaluate(node.X, constants)
		unit, ok := node.Y.(*ast.SelectorExpr)
		n, err := strconv.Atoi(number)
		if !known || !ok || err != nil || node.Op != token.MUL {
			return "", false
		}
		units := map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
		return durationText(time.Duration(n) * units[unit.Sel.Name]), units[unit.Sel.Name] > 0
	case *ast.Ident:
		switch node.Name {
		case "true", "false":
			return node.Name, true
		case "nil":
			return "", true
		}
		if value, ok := constants[node.Name]; ok {
			return evaluate(value, constants)
		}
	}
	return "", false
}

// durationText writes 2m for 2m0s.
func durationText(d time.Duration) string {
	return strings.NewReplacer("m0s", "m", "h0m", "h").Replace(d.String())
}

// tableOf returns the cells of the rows of a section of the page of flags, by what the first cell quotes.
func tableOf(t *testing.T, title string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(flagsPage)))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "\n## "+title+"\n")
	require.True(t, ok, "%s has no section %s", flagsPage, title)
	section, _, _ = strings.Cut(section, "\n## ")
	found := map[string][]string{}
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if quote := span.FindStringSubmatch(cells[0]); strings.HasPrefix(line, "| `") && quote != nil {
			require.NotContains(t, found, quote[1], "%s: two rows", title)
			found[quote[1]] = cells[1:]
		}
	}
	require.NotEmpty(t, found, title)
	return found
}

// compare holds the rows of a section to the flags of the code.
func compare(t *testing.T, title string, rows map[string][]string, code map[string]definition) {
	t.Helper()
	for name, flag := range code {
		row, ok := rows["--"+name]
		if !assert.True(t, ok, "%s: --%s is missing", title, name) {
			continue
		}
		if !flag.unknown {
			assert.Equal(t, flag.value, strings.Trim(row[0], "`"), "%s: default of --%s", title, name)
		} else {
			assert.NotEmpty(t, row[0], "%s: default of --%s", title, name)
		}
	}
	for name := range rows {
		assert.Contains(t, code, strings.TrimPrefix(name, "--"), "%s: there is no such flag", title)
	}
}

// merged returns the flags of several folders.
func merged(t *testing.T, folders ...string) map[string]definition {
	t.Helper()
	all := map[string]definition{}
	for _, folder := range folders {
		maps.Copy(all, flagsIn(t, folder))
	}
	return all
}

// The page has each flag of managers and agent with its default, and no other one.
func TestFlagsAreThoseOfTheCode(t *testing.T) {
	shared := merged(t, "core/operator/process")
	require.Len(t, shared, 4)
	// Those of controller-runtime.
	for _, name := range []string{"kubeconfig", "zap-devel", "zap-encoder", "zap-log-level", "zap-stacktrace-level", "zap-time-encoding"} {
		shared[name] = definition{unknown: name != "kubeconfig"}
	}
	compare(t, "every process", tableOf(t, "Flags of every process"), shared)
	compare(t, "every manager", tableOf(t, "Flags of every manager"), merged(t, "core/operator/manager"))
	compare(t, "agent", tableOf(t, "Flags of the node agent"), merged(t, "daemon/internal/agent"))

	workers := flagsIn(t, "core/frame")[gap+"-workers"] // the feature is before the hyphen
	require.NotEmpty(t, workers)
	own, of := map[string]definition{}, map[string][]string{}
	for _, feature := range managers(t) {
		flags := flagsIn(t, feature+"/setup")
		if usesFrame(t, feature) {
			flags[feature+"-workers"] = workers
		}
		for name, flag := range flags {
			own[name] = flag
			of["--"+name] = append(of["--"+name], feature)
		}
	}
	rows := tableOf(t, "Flags of one manager")
	compare(t, "one manager", rows, own)
	for name, row := range rows {
		assert.Equal(t, strings.Join(of[name], ", "), row[1], "managers of %s", name)
	}
}

// managers returns the modules that have one.
func managers(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "*", "setup"))
	require.NoError(t, err)
	for i, folder := range found {
		found[i] = filepath.Base(filepath.Dir(folder))
	}
	require.Greater(t, len(found), 5)
	return found
}

// usesFrame reports whether the manager is one of a kind of workload.
func usesFrame(t *testing.T, feature string) bool {
	t.Helper()
	for _, file := range sources(t) {
		if path.Dir(file.path) != feature+"/setup" {
			continue
		}
		built := false
		ast.Inspect(file.File, func(n ast.Node) bool {
			called, ok := n.(*ast.SelectorExpr)
			if ok && called.Sel.Name == "Operator" {
				from, ok := called.X.(*ast.Ident)
				built = built || ok && from.Name == "frame"
			}
			return true
		})
		if built {
			return true
		}
	}
	return false
}

// description has the feature gates of a feature, as its feature.yaml declares them.
type description struct {
	FeatureGates []struct {
		Name    string
		Default bool
	}
	SharedFeatureGates []string
}

// gatesOfTheCode returns the feature gates with their defaults, and who reads each. Those that nobody reads have no default.
func gatesOfTheCode(t *testing.T) (defaults map[string]string, readers map[string][]string) {
	t.Helper()
	defaults, readers = gatesOfCore(t), map[string][]string{}
	for _, feature := range managers(t) {
		var d description
		require.NoError(t, yaml.Unmarshal([]byte(text(t, feature+"/config/feature.yaml")), &d))
		for _, gate := range d.FeatureGates {
			defaults[gate.Name] = map[bool]string{true: "on", false: "off"}[gate.Default]
			readers[gate.Name] = append(readers[gate.Name], feature)
		}
		for _, name := range d.SharedFeatureGates {
			readers[name] = append(readers[name], feature)
		}
	}
	for _, file := range sources(t) {
		if file.path != "daemon/internal/agent/options.go" {
			continue
		}
		ast.Inspect(file.File, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if _, isGate := defaults[selector.Sel.Name]; isGate {
					readers[selector.Sel.Name] = append(readers[selector.Sel.Name], "agent")
				}
			}
			return true
		})
	}
	return defaults, readers
}

// gatesOfCore returns the defaults of the feature gates that several operators read, and the names of those that are accepted.
func gatesOfCore(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range sources(t) {
		if file.path != "core/operator/features/gates.go" {
			continue
		}
		ast.Inspect(file.File, func(node ast.Node) bool {
			list, ok := node.(*ast.CompositeLit)
			if !ok {
				return true
			}
			gate, value := "", "off"
			for _, element := range list.Elts {
				switch element := element.(type) {
				case *ast.BasicLit:
					found[strings.Trim(element.Value, `"`)] = ""
				case *ast.KeyValueExpr:
					key, of := element.Key.(*ast.Ident), element.Value
					if name, ok := of.(*ast.Ident); ok && key.Name == "Name" {
						gate = name.Name
					} else if ok && key.Name == "Default" {
						value = "on"
					}
				}
			}
			if gate != "" {
				found[gate] = value
			}
			return true
		})
	}
	return found
}

// The page has each feature gate with its default and its readers, and no other one.
func TestGatesAreThoseOfTheCode(t *testing.T) {
	defaults, readers := gatesOfTheCode(t)
	require.Greater(t, len(defaults), 30)
	used, ignored := tableOf(t, "Feature gates"), tableOf(t, "Gates without effect")
	for name, value := range defaults {
		if len(readers[name]) == 0 {
			assert.Contains(t, ignored, name)
			continue
		}
		if assert.Contains(t, used, name) {
			assert.Equal(t, value, used[name][0], "default of %s", name)
			assert.ElementsMatch(t, readers[name], strings.Split(used[name][1], ", "), "readers of %s", name)
		}
	}
	assert.Len(t, defaults, len(used)+len(ignored), "the page has other gates")
}

package install

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// metric is one that the code registers.
type metric struct {
	name, help string
	labels     []string
}

// row returns the row of the page. The values of the last label that the present row names are kept.
func (m *metric) row(present string) string {
	column := ""
	for i, label := range m.labels {
		if i > 0 {
			column += ", "
		}
		column += "`" + label + "`"
	}
	if _, values, named := strings.Cut(present, ":"); named {
		column += ":" + values
	}
	if column != "" {
		column += " "
	}
	help := strings.TrimSuffix(strings.ToLower(m.help[:1])+m.help[1:], ".")
	return "| `" + m.name + "` | " + column + "| " + help + " |"
}

// metricsOfTheCode finds where options of a metric, of the form prometheus.GaugeOpts, are handed to a function: texts among the
// function's other arguments are the labels, as are the keys of ConstLabels.
func metricsOfTheCode(t *testing.T) map[string]*metric {
	t.Helper()
	found := map[string]*metric{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if call, is := node.(*ast.CallExpr); is {
				if m := metricOf(call); m != nil {
					found[m.name] = m
				}
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

// metricOf returns the metric whose options are an argument of the call, or nil.
func metricOf(call *ast.CallExpr) *metric {
	m := &metric{}
	for _, argument := range call.Args {
		switch options, isLiteral := argument.(*ast.CompositeLit); {
		case !isLiteral:
			m.labels = append(m.labels, textsOf(argument)...)
		case isOptions(options):
			m.describe(options)
		default:
			m.labels = append(m.labels, textsOf(argument)...)
		}
	}
	if !ours(m.name) {
		return nil
	}
	return m
}

func isOptions(literal *ast.CompositeLit) bool {
	kind, is := literal.Type.(*ast.SelectorExpr)
	return is && strings.HasSuffix(kind.Sel.Name, "Opts")
}

func (m *metric) describe(options *ast.CompositeLit) {
	for _, element := range options.Elts {
		field := element.(*ast.KeyValueExpr)
		switch field.Key.(*ast.Ident).Name {
		case "Name":
			m.name = strings.Join(textsOf(field.Value), "")
		case "Help":
			m.help = strings.Join(textsOf(field.Value), "")
		case "ConstLabels":
			if labels, is := field.Value.(*ast.CompositeLit); is {
				for _, label := range labels.Elts {
					m.labels = append(m.labels, textsOf(label.(*ast.KeyValueExpr).Key)...)
				}
			}
		}
	}
}

// textsOf returns the literal texts in an expression, apart from those of functions.
func textsOf(expression ast.Expr) (all []string) {
	ast.Inspect(expression, func(node ast.Node) bool {
		if _, is := node.(*ast.FuncLit); is {
			return false
		}
		if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value) // the parser has accepted it
			all = append(all, text)
		}
		return true
	})
	return all
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// expression is one of the rules or of the dashboard.
type expression struct {
	// From is the alert, or the title of the panel.
	From string `json:"from"`
	Expr string `json:"expr"`
	// Results is how many series the expression has in the end, and Selectors how many each of its selectors has.
	Results   int            `json:"results"`
	Selectors map[string]int `json:"selectors"`

	wait   time.Duration // of an alert, before it fires
	alert  bool
	active map[string]time.Time
}

// readRules reads the alerts of a file; at most so long do they wait.
func readRules(file string, longest time.Duration, p parser.Parser) ([]*expression, error) {
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, p)
	if len(errs) > 0 {
		return nil, fmt.Errorf("load the rules: %w", errors.Join(errs...))
	}
	var all []*expression
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			all = append(all, &expression{
				From:   rule.Alert,
				Expr:   rule.Expr,
				alert:  true,
				wait:   min(time.Duration(rule.For), longest),
				active: map[string]time.Time{},
			})
		}
	}
	return all, nil
}

// dashboard is what is read of a dashboard's JSON.
type dashboard struct {
	Title  string
	Panels []panel
}

type panel struct {
	Title, Type string
	GridPos     struct{ X, Y, W, H float64 }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }
}

func readDashboard(file string) (d dashboard, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return d, fmt.Errorf("read the dashboard: %w", err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("decode the dashboard: %w", err)
	}
	return d, nil
}

// rows returns the panels row by row, each with its title first.
func (d dashboard) rows() (rows [][]panel) {
	for _, p := range d.Panels {
		if p.Type == "row" {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], p)
	}
	return rows
}

// expressions returns those of all panels.
func (d dashboard) expressions(fill func(string) string) (all []*expression) {
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, &expression{From: p.Title, Expr: fill(target.Expr)})
		}
	}
	return all
}

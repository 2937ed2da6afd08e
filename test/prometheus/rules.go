package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
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
				From: rule.Alert, Expr: rule.Expr, alert: true,
				wait: min(time.Duration(rule.For), longest), active: map[string]time.Time{},
			})
		}
	}
	return all, nil
}

// readDashboard reads the expressions of a dashboard, with its variables set to what selects everything.
func readDashboard(file string) ([]*expression, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the dashboard: %w", err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("decode the dashboard: %w", err)
	}
	variables := strings.NewReplacer("$__rate_interval", "2m", "$__range", "1h", "$__interval", "1m", "$operator", ".+", "${operator}", ".+")
	var all []*expression
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, &expression{From: panel.Title, Expr: variables.Replace(target.Expr)})
		}
	}
	return all, nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// longestWait bounds the `for` of alerts.
const longestWait = time.Minute

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "prometheus:", err)
		os.Exit(1)
	}
}

func run(arguments []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("prometheus", flag.ContinueOnError)
	rules := flags.String("rules", "", "file of rules")
	file := flags.String("dashboard", "", "file of a dashboard")
	step := flags.Duration("step", 15*time.Second, "how long a scrape counts")
	pause := flags.Duration("pause", 50*time.Millisecond, "the real time between two scrapes")
	picture := flags.String("draw", "", "file for a picture of the dashboard")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	expressions := parser.NewParser(parser.Options{})
	alerts, err := readRules(*rules, longestWait, expressions)
	if err != nil {
		return err
	}
	board, err := readDashboard(*file)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	now := time.Now()
	s := &server{
		store:   store{map[string]*series{}},
		targets: flags.Args(),
		began:   now,
		now:     now,
		step:    *step,
		out:     json.NewEncoder(out),
		parser:  expressions,
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples:               50e6,
			Timeout:                  time.Minute,
			LookbackDelta:            5 * time.Minute,
			Parser:                   expressions,
			NoStepSubqueryIntervalFn: func(int64) int64 { return step.Milliseconds() },
		}),
	}
	if err := s.serve(ctx, *pause, alerts); err != nil {
		return err
	}
	ctx = context.Background()
	if *picture != "" {
		if err := s.draw(ctx, *picture, board); err != nil {
			return err
		}
	}
	return s.report(ctx, append(alerts, board.expressions(s.fill)...))
}

// server scrapes targets, of the form OPERATOR=URL, and evaluates.
type server struct {
	store   store
	targets []string
	began   time.Time
	now     time.Time
	step    time.Duration
	engine  *promql.Engine
	parser  parser.Parser
	out     *json.Encoder
}

// fill sets the variables of a dashboard to what selects everything.
func (s *server) fill(expression string) string {
	window := fmt.Sprintf("%ds", int(8*s.step.Seconds()))
	return strings.NewReplacer("$__rate_interval", window, "$__range", "1h", "$__interval", "1m", "$operator", ".+", "${operator}", ".+").Replace(expression)
}

// serve scrapes and watches over the alerts until ctx ends.
func (s *server) serve(ctx context.Context, pause time.Duration, alerts []*expression) error {
	last := context.WithoutCancel(ctx)
	for ticker := time.NewTicker(pause); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		s.now = s.now.Add(s.step)
		for _, target := range s.targets {
			operator, url, _ := strings.Cut(target, "=")
			if err := s.store.scrape(last, operator, url, s.now.UnixMilli()); err != nil {
				return err
			}
		}
		for _, alert := range alerts {
			if err := s.watch(last, alert); err != nil {
				return err
			}
		}
	}
}

// watch prints the series for which the alert begins to fire.
func (s *server) watch(ctx context.Context, alert *expression) error {
	vector, err := s.query(ctx, alert.Expr)
	if err != nil {
		return fmt.Errorf("evaluate %s: %w", alert.From, err)
	}
	still := map[string]time.Time{}
	for _, one := range vector {
		key := one.Metric.String()
		since, active := alert.active[key]
		if !active {
			since = s.now
		}
		if still[key] = since; since.IsZero() { // it fires already
			continue
		}
		if s.now.Sub(since) >= alert.wait {
			still[key] = time.Time{}
			if err := s.out.Encode(map[string]any{"alert": alert.From, "labels": one.Metric.Map()}); err != nil {
				return err
			}
		}
	}
	alert.active = still
	return nil
}

func (s *server) query(ctx context.Context, expression string) (promql.Vector, error) {
	query, err := s.engine.NewInstantQuery(ctx, &s.store, nil, expression, s.now)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	return query.Exec(ctx).Vector()
}

// report prints what data the expressions have.
func (s *server) report(ctx context.Context, all []*expression) error {
	for _, e := range all {
		vector, err := s.query(ctx, e.Expr)
		if err != nil {
			return fmt.Errorf("evaluate %s: %w", e.From, err)
		}
		e.Results = len(vector)
		if e.Selectors, err = s.selectors(ctx, e.Expr); err != nil {
			return fmt.Errorf("evaluate the parts of %s: %w", e.From, err)
		}
		if err := s.out.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// selectors counts the series of each selector in the expression.
func (s *server) selectors(ctx context.Context, text string) (map[string]int, error) {
	parsed, err := s.parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	count, errs := map[string]int{}, []error{}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			plain := &parser.VectorSelector{Name: selector.Name, LabelMatchers: selector.LabelMatchers}
			vector, err := s.query(ctx, "last_over_time("+plain.String()+"[1h])")
			count[plain.String()] = len(vector)
			errs = append(errs, err)
		}
		return nil
	})
	return count, errors.Join(errs...)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// store holds all samples in memory. It is what the engine queries.
type store struct {
	series map[string]*series
}

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
	target  string
	gone    bool
}

// sample is a value at a time in milliseconds; histograms are series of their own in the text format.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// scrape adds the present samples of the target. Series that it no longer has end, as all do when it does not answer.
func (s *store) scrape(ctx context.Context, operator, url string, at int64) error {
	page, err := get(ctx, url)
	if err != nil {
		page = nil // what does not answer has no series any more
	}
	seen := map[string]bool{}
	for p := textparse.NewPromParser(page, labels.NewSymbolTable(), false); ; {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("parse the metrics of %s: %w", operator, err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var found labels.Labels
		p.Labels(&found)
		_, _, v := p.Series()
		b := labels.NewBuilder(found)
		b.Set("operator", operator).Set("instance", url)
		found = b.Labels()
		key := found.String()
		seen[key] = true
		s.add(key, operator, found, sample{at, v})
	}
	for key, one := range s.series {
		if one.target == operator && !seen[key] && !one.gone {
			one.samples = append(one.samples, sample{at, math.Float64frombits(value.StaleNaN)})
			one.gone = true
		}
	}
	return nil
}

func (s *store) add(key, target string, of labels.Labels, value sample) {
	if s.series[key] == nil {
		s.series[key] = &series{labels: of, target: target}
	}
	s.series[key].samples = append(s.series[key].samples, value)
	s.series[key].gone = false
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// Querier makes the store a storage.Queryable.
func (s *store) Querier(_, _ int64) (storage.Querier, error) { return querier{s}, nil }

type querier struct{ *store }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, one := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(one.labels, one.samples))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &selected{found: found, at: -1}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

// selected is a storage.SeriesSet.
type selected struct {
	found []storage.Series
	at    int
}

func (s *selected) Next() bool {
	s.at++
	return s.at < len(s.found)
}

func (s *selected) At() storage.Series                { return s.found[s.at] }
func (s *selected) Err() error                        { return nil }
func (s *selected) Warnings() annotations.Annotations { return nil }

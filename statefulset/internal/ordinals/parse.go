package ordinals

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Parse reads the entries of spec.reserveOrdinals, which is at the path: numbers of 0 or more, and texts such as
// "2-5", which include both ends and may have leading zeros. Entries may overlap. It names every entry that is
// neither; then it returns the ordinals that the others reserve, which is no reading to act on.
func Parse(entries []intstr.IntOrString, path *field.Path) (Reserved, field.ErrorList) {
	ranges, errs := parse(entries, path)
	known := slices.DeleteFunc(ranges, func(r Range) bool { return r == unreadable() })
	return merge(known), errs
}

// Overlaps names the entries with ordinals that another entry reserves already, one sentence each in the order of the
// entries: they do no harm, but may be a mistake. Unreadable entries overlap nothing.
func Overlaps(entries []intstr.IntOrString, path *field.Path) []string {
	ranges, _ := parse(entries, path)
	order := make([]int, 0, len(ranges))
	for i := range ranges {
		if ranges[i] != unreadable() {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranges[a].First, ranges[b].First) })
	farthest := -1 // the entry that reaches farthest so far
	var overlapping []int
	for _, i := range order {
		if farthest >= 0 && ranges[i].First <= ranges[farthest].Last {
			overlapping = append(overlapping, max(i, farthest))
		}
		if farthest < 0 || ranges[i].Last > ranges[farthest].Last {
			farthest = i
		}
	}
	slices.Sort(overlapping)
	var texts []string
	for _, i := range slices.Compact(overlapping) {
		texts = append(texts, fmt.Sprintf("%s: %s overlaps with another entry", path.Index(i), entries[i].String()))
	}
	return texts
}

// unreadable stands for an entry that cannot be read.
func unreadable() Range { return Range{First: -1, Last: -1} }

// parse is one range for each entry.
func parse(entries []intstr.IntOrString, path *field.Path) ([]Range, field.ErrorList) {
	ranges := make([]Range, 0, len(entries))
	var errs field.ErrorList
	for i := range entries {
		r, err := parseEntry(entries[i])
		if err != nil {
			r = unreadable()
			errs = append(errs, field.Invalid(path.Index(i), entries[i].String(), fmt.Sprintf("entry %d: %v", i, err)))
		}
		ranges = append(ranges, r)
	}
	return ranges, errs
}

func parseEntry(entry intstr.IntOrString) (Range, error) {
	if entry.Type == intstr.Int {
		if entry.IntVal < 0 {
			return Range{}, fmt.Errorf("ordinal %d is negative", entry.IntVal)
		}
		return Range{First: entry.IntVal, Last: entry.IntVal}, nil
	}
	from, to, ok := strings.Cut(entry.StrVal, "-")
	if !ok || !isNumber(from) || !isNumber(to) {
		return Range{}, fmt.Errorf("%q is not a valid range: write two numbers and a dash, such as \"2-5\"", entry.StrVal)
	}
	first, err := parseOrdinal(from)
	if err != nil {
		return Range{}, err
	}
	last, err := parseOrdinal(to)
	if err != nil {
		return Range{}, err
	}
	if first > last {
		return Range{}, fmt.Errorf("%q is not a valid range: its start %d is greater than its end %d", entry.StrVal, first, last)
	}
	return Range{First: first, Last: last}, nil
}

// isNumber reports whether the text is digits and nothing else.
func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func parseOrdinal(digits string) (int32, error) {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s is greater than the largest ordinal, %d", digits, math.MaxInt32)
	}
	return int32(n), nil
}

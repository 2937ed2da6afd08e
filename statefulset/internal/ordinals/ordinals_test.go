package ordinals

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var path = field.NewPath("spec", "reserveOrdinals")

// entries reads numbers and texts.
func entries(list ...any) []intstr.IntOrString {
	var all []intstr.IntOrString
	for _, e := range list {
		switch e := e.(type) {
		case int:
			all = append(all, intstr.FromInt32(int32(e)))
		case string:
			all = append(all, intstr.FromString(e))
		}
	}
	return all
}

// list is the live ordinals, each with its right rank.
func list(t *testing.T, live Live) []int32 {
	t.Helper()
	all := []int32{}
	for rank, ordinal := range live.All() {
		require.Equal(t, len(all), rank)
		found, runs := live.Rank(ordinal)
		require.True(t, runs)
		require.Equal(t, rank, found)
		all = append(all, ordinal)
	}
	require.Equal(t, len(all), live.Len())
	return all
}

func TestLiveOrdinals(t *testing.T) {
	rows := []struct {
		name        string
		count, from int32
		reserved    []intstr.IntOrString
		want        []int32
	}{
		{"nothing reserved", 4, 0, nil, []int32{0, 1, 2, 3}},
		{"one reserved", 4, 0, entries(1), []int32{0, 2, 3, 4}},
		{"a pod is moved away", 4, 0, entries(1, 3), []int32{0, 2, 4, 5}},
		{"a pod is moved away and replicas lowered", 3, 0, entries(1, 3), []int32{0, 2, 4}},
		{"start 2", 4, 2, entries(1, 3), []int32{2, 4, 5, 6}},
		{"start is reserved", 4, 3, entries(1, 3), []int32{4, 5, 6, 7}},
		{"start after what is reserved", 4, 4, entries(1, 3), []int32{4, 5, 6, 7}},
		{"reserved below and above start", 3, 2, entries(0, 4), []int32{2, 3, 5}},
		{"many reserved", 3, 0, entries(0, 2, 3, 4, 5), []int32{1, 6, 7}},
		{"a range", 3, 0, entries(0, "2-5"), []int32{1, 6, 7}},
		{"all before a range", 1, 0, entries(0, "2-5"), []int32{1}},
		{"start 1", 4, 1, entries(1, 3, 4), []int32{2, 5, 6, 7}},
		{"no replicas", 0, 3, entries(1, 3), []int32{}},
		{"negative replicas", -1, 0, nil, []int32{}},
		{"negative start", 2, -5, nil, []int32{0, 1}},
		{"a range that nobody could expand", 2, 0, entries("0-2000000000"), []int32{2000000001, 2000000002}},
		{"the last ordinals", 3, math.MaxInt32 - 1, nil, []int32{math.MaxInt32 - 1, math.MaxInt32}},
		{"everything is reserved", 3, 0, entries("0-2147483647"), []int32{}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			reserved, errs := Parse(row.reserved, path)
			require.Empty(t, errs)
			assert.Equal(t, row.want, list(t, reserved.Live(row.from, row.count)))
		})
	}
}

func TestParseMergesWhatOverlapsOrTouches(t *testing.T) {
	reserved, errs := Parse(entries("0003-005", 6, 9, "4-4", 9, 1), path)
	require.Empty(t, errs)
	assert.Equal(t, Reserved{{1, 1}, {3, 6}, {9, 9}}, reserved)
	for ordinal, want := range map[int32]bool{0: false, 1: true, 2: false, 3: true, 6: true, 7: false, 9: true, 10: false, math.MaxInt32: false} {
		assert.Equal(t, want, reserved.Has(ordinal), "%d", ordinal)
	}
}

func TestParseNamesTheEntriesItCannotRead(t *testing.T) {
	for text, want := range map[string]string{
		"3-1":          `"3-1" is not a valid range: its start 3 is greater than its end 1`,
		"1-2-3":        `"1-2-3" is not a valid range`,
		"1-%":          `"1-%" is not a valid range`,
		"-1-2":         `"-1-2" is not a valid range`,
		"5":            `"5" is not a valid range`,
		"":             `"" is not a valid range`,
		"1-":           `"1-" is not a valid range`,
		"1 - 2":        `"1 - 2" is not a valid range`,
		"0-2147483648": `2147483648 is greater than the largest ordinal, 2147483647`,
	} {
		t.Run(text, func(t *testing.T) {
			reserved, errs := Parse(entries(7, text), path)
			require.Len(t, errs, 1)
			assert.Equal(t, "spec.reserveOrdinals[1]", errs[0].Field)
			assert.Equal(t, field.ErrorTypeInvalid, errs[0].Type)
			assert.Contains(t, errs[0].Detail, "entry 1: "+want)
			assert.Equal(t, Reserved{{7, 7}}, reserved)
		})
	}
	_, errs := Parse(entries(-4), path)
	require.Len(t, errs, 1)
	assert.Equal(t, "spec.reserveOrdinals[0]", errs[0].Field)
	assert.Contains(t, errs[0].Detail, "ordinal -4 is negative")
}

func TestOverlapsAreNamed(t *testing.T) {
	assert.Empty(t, Overlaps(entries(1, "2-3", 4, "x"), path))
	assert.Equal(t, []string{
		"spec.reserveOrdinals[1]: 2-4 overlaps with another entry",
		"spec.reserveOrdinals[3]: 3 overlaps with another entry",
	}, Overlaps(entries(2, "2-4", "5-6", 3), path))
}

// FuzzLive compares with counting, which is right and slow.
func FuzzLive(f *testing.F) {
	f.Add(int32(0), int32(4), int32(1), int32(1), int32(3), int32(5))
	f.Add(int32(2), int32(3), int32(0), int32(0), int32(4), int32(4))
	f.Fuzz(func(t *testing.T, start, count, a, b, c, d int32) {
		small := func(n, bound int32) int32 { return int32(uint32(n) % uint32(bound)) }
		start, count = small(start, 100), small(count, 50)
		a, c = small(a, 100), small(c, 100)
		b, d = a+small(b, 30), c+small(d, 30)
		reserved, errs := Parse(entries(fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("%03d-%d", c, d), int(a)), path)
		require.Empty(t, errs)
		has := func(n int32) bool { return a <= n && n <= b || c <= n && n <= d }
		want := []int32{}
		for n := start; int32(len(want)) < count; n++ {
			if !has(n) {
				want = append(want, n)
			}
		}
		live := reserved.Live(start, count)
		assert.Equal(t, want, list(t, live))
		for n := range int32(200) {
			assert.Equal(t, has(n), reserved.Has(n), "%d", n)
			_, runs := live.Rank(n)
			assert.Equal(t, slices.Contains(want, n), runs, "%d", n)
		}
		for i := 1; i < len(reserved); i++ {
			assert.Greater(t, reserved[i].First, reserved[i-1].Last+1, "%v", reserved)
		}
	})
}

// FuzzParse reads anything: it either names an entry or reads it as a range in order.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1-2", "3-1", "0003-005", "1-2-3", "", "-", "9999999999-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		reserved, errs := Parse(entries(text), path)
		require.Equal(t, len(errs) == 0, len(reserved) == 1)
		assert.True(t, slices.IsSortedFunc(reserved, func(a, b Range) int { return int(int64(a.First) - int64(b.First)) }))
		for _, r := range reserved {
			assert.LessOrEqual(t, r.First, r.Last)
			assert.GreaterOrEqual(t, r.First, int32(0))
		}
	})
}

// Nobody counts to two thousand millions.
func TestAbsurdNumbersCostNothing(t *testing.T) {
	reserved, _ := Parse(entries("1000000-1500000000", 5), path)
	live := reserved.Live(0, 600_000_000)
	assert.Equal(t, 600_000_000, live.Len())
	rank, runs := live.Rank(1500000001)
	assert.True(t, runs)
	assert.Equal(t, 999_999, rank)
}

// However many entries there are and however long their ranges.
func BenchmarkLive(b *testing.B) {
	var many []intstr.IntOrString
	for i := range 1000 {
		many = append(many, intstr.FromString(fmt.Sprintf("%d-%d", 1000*i, 1000*i+900)))
	}
	many = append(many, intstr.FromString("1000000-2000000000"))
	for b.Loop() {
		reserved, _ := Parse(many, path)
		reserved.Live(0, 10000)
	}
}

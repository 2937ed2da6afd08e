package rollout

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func amount(text string) *intstr.IntOrString {
	p := intstr.Parse(text)
	return &p
}

func TestPartition(t *testing.T) {
	cases := []struct {
		partition string
		replicas  int32
		want      int32
	}{
		{"80%", 10, 8},
		{"99%", 4, 3},
		{"90%", 4, 3},
		{"10%", 4, 1},
		{"0%", 4, 0},
		{"100%", 4, 4},
		{"100.0%", 4, 4},
		{"99%", 1, 1},
		{"50%", 5, 3},
		{"33.3%", 10, 4},
		{"0.1%", 10000, 10},
		{"99.9%", 1000, 999},
		{"7", 5, 5},
		{"5", 5, 5},
		{"3", 0, 0},
		{"120%", 10, 10},
		{"-1", 5, 0},
		{"-20%", 5, 0},
		{"99%", 0, 0},
	}
	for _, c := range cases {
		t.Run(c.partition+" of "+strconv.Itoa(int(c.replicas)), func(t *testing.T) {
			got, err := Partition(amount(c.partition), c.replicas)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestKeepsPodsJudgesThePartitionAsItself(t *testing.T) {
	for text, want := range map[string]bool{"3": true, "1%": true, "100%": true, "0": false, "0%": false, "-1": false, "-20%": false, "abc": false} {
		assert.Equal(t, want, KeepsPods(amount(text)), text)
	}
	assert.False(t, KeepsPods(nil))
}

func TestAbsentAmounts(t *testing.T) {
	partition, err := Partition(nil, 5)
	require.NoError(t, err)
	assert.Zero(t, partition)

	surge, err := MaxSurge(nil, 5, false)
	require.NoError(t, err)
	assert.Zero(t, surge)

	unavailable, err := MaxUnavailable(nil, 4, 0)
	require.NoError(t, err)
	assert.Equal(t, int32(1), unavailable, "20 % of 4, rounded up")

	limit, err := ScaleMaxUnavailable(nil, 5)
	require.NoError(t, err)
	assert.Equal(t, int32(math.MaxInt32), limit)
}

func TestMaxUnavailableRoundsDownOnlyBesideSurge(t *testing.T) {
	cases := []struct {
		unavailable, surge string
		replicas           int32
		wantUnavailable    int32
		wantSurge          int32
	}{
		{"20%", "0", 3, 1, 0},
		{"20%", "1", 3, 0, 1},
		{"25%", "25%", 10, 2, 3},
		{"120%", "0", 10, 12, 0},
		{"2", "1", 10, 2, 1},
		{"33.3%", "0%", 10, 4, 0},
		{"-1", "-1", 10, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.unavailable+" with surge "+c.surge, func(t *testing.T) {
			surge, err := MaxSurge(amount(c.surge), c.replicas, false)
			require.NoError(t, err)
			assert.Equal(t, c.wantSurge, surge)
			unavailable, err := MaxUnavailable(amount(c.unavailable), c.replicas, surge)
			require.NoError(t, err)
			assert.Equal(t, c.wantUnavailable, unavailable)
		})
	}
}

func TestPausedStrategyHasNoSurge(t *testing.T) {
	surge, err := MaxSurge(amount("50%"), 10, true)
	require.NoError(t, err)
	assert.Zero(t, surge)
}

func TestScaleMaxUnavailableRoundsUp(t *testing.T) {
	limit, err := ScaleMaxUnavailable(amount("25%"), 10)
	require.NoError(t, err)
	assert.Equal(t, int32(3), limit)
}

func TestErrorsNameTheField(t *testing.T) {
	const reason = ` "abc": must be a number or a percentage such as 20%`
	_, err := Partition(amount("abc"), 5)
	require.ErrorIs(t, err, errNotAmount)
	require.EqualError(t, err, "partition"+reason)
	_, err = MaxSurge(amount("abc"), 5, true)
	require.EqualError(t, err, "maxSurge"+reason)
	_, err = MaxUnavailable(amount("abc"), 5, 0)
	require.EqualError(t, err, "maxUnavailable"+reason)
	_, err = ScaleMaxUnavailable(amount("abc"), 5)
	require.EqualError(t, err, "maxUnavailable"+reason)
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"5", "", "%", ".%", "1/3%", "1e2%", "0x10%", "1_0%", "--1%", "1.2.3%", "5 %", "Inf%", "50%%",
		"0.00000000000000000000000000000001%"} {
		t.Run(text, func(t *testing.T) {
			_, err := Parse(intstr.IntOrString{Type: intstr.String, StrVal: text})
			require.Error(t, err)
		})
	}
}

func TestParseTellsWhatItRead(t *testing.T) {
	cases := []struct {
		text                 string
		percentage, negative bool
	}{
		{"5", false, false}, {"-5", false, true}, {"5%", true, false}, {"-0.5%", true, true}, {".5%", true, false}, {"+5%", true, false},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			a, err := Parse(intstr.Parse(c.text))
			require.NoError(t, err)
			assert.Equal(t, c.percentage, a.isPercentage())
			assert.Equal(t, c.negative, a.IsNegative())
		})
	}
}

func TestHugePercentagesStayInRange(t *testing.T) {
	for text, want := range map[string]int32{
		"9999999999999999999999999999%":  math.MaxInt32,
		"-9999999999999999999999999999%": -math.MaxInt32,
	} {
		a, err := Parse(intstr.IntOrString{Type: intstr.String, StrVal: text})
		require.NoError(t, err)
		assert.Equal(t, want, a.ScaledTo(math.MaxInt32, RoundUp), text)
	}
}

// Whatever the replicas: a percentage below 100 % leaves a pod to update, one above 0 % keeps a pod,
// a larger one never keeps fewer, and none is further than one pod from its exact share.
func TestPartitionInvariants(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		replicas := 2 + random.Int32N(2000)
		tenths := 1 + random.IntN(998)
		keep, err := Partition(amount(percentage(tenths)), replicas)
		require.NoError(t, err)
		more, err := Partition(amount(percentage(tenths+1)), replicas)
		require.NoError(t, err)
		require.Positive(t, keep, "%s of %d", percentage(tenths), replicas)
		require.Less(t, keep, replicas, "%s of %d", percentage(tenths), replicas)
		require.LessOrEqual(t, keep, more, "%s of %d", percentage(tenths), replicas)
		exact := int64(tenths) * int64(replicas)
		require.GreaterOrEqual(t, 1000*(int64(keep)+1), exact)
		require.Less(t, 1000*(int64(keep)-1), exact)
	}
}

func percentage(tenths int) string {
	return strconv.Itoa(tenths/10) + "." + strconv.Itoa(tenths%10) + "%"
}

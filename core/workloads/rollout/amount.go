package rollout

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// errNotAmount means that a text is no percentage.
var errNotAmount = errors.New("must be a number or a percentage such as 20%")

// longestPercentage bounds the cost of computing a percentage; it leaves room for far more digits than can change a
// number of pods.
const longestPercentage = 32

// Rounding is the direction in which a fraction of a pod is rounded.
type Rounding int

// The roundings.
const (
	RoundUp   Rounding = iota // towards more pods
	RoundDown                 // towards fewer pods
)

// Amount is a number of pods, or a percentage of a total that is not known yet.
type Amount struct {
	number  int32
	percent *big.Rat
}

// Parse reads a number, or a text such as "20%" or "33.3%". A text without "%" is refused, even when it
// is a number. Negative amounts are accepted.
func Parse(p intstr.IntOrString) (Amount, error) {
	if p.Type == intstr.Int {
		return Amount{number: p.IntVal}, nil
	}
	digits, ok := strings.CutSuffix(p.StrVal, "%")
	if !ok {
		return Amount{}, errNotAmount
	}
	percent, ok := decimal(digits)
	if !ok {
		return Amount{}, errNotAmount
	}
	return Amount{percent: percent}, nil
}

// decimal reads an optional sign and digits with at most one point, and none of the other forms
// that big.Rat knows (fractions, exponents, hexadecimal digits).
func decimal(text string) (*big.Rat, bool) {
	unsigned := strings.TrimPrefix(strings.TrimPrefix(text, "+"), "-")
	other := func(r rune) bool { return r != '.' && (r < '0' || r > '9') }
	if len(text) > longestPercentage || strings.ContainsFunc(unsigned, other) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// isPercentage reports whether the amount depends on a total.
func (a Amount) isPercentage() bool { return a.percent != nil }

// IsNegative reports whether the amount is less than zero.
func (a Amount) IsNegative() bool {
	return a.number < 0 || a.percent != nil && a.percent.Sign() < 0
}

// isPositive reports whether the amount is more than zero.
func (a Amount) isPositive() bool {
	return a.number > 0 || a.percent != nil && a.percent.Sign() > 0
}

// ScaledTo is the amount as a number of pods out of total. It is not clamped: "120%" of 10 is 12.
func (a Amount) ScaledTo(total int32, r Rounding) int32 {
	if a.percent == nil {
		return a.number
	}
	pods := new(big.Rat).Mul(a.percent, big.NewRat(int64(total), 100))
	whole, rest := new(big.Int).DivMod(pods.Num(), pods.Denom(), new(big.Int)) // rounds down, also below zero
	if r == RoundUp && rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return int32(math.MaxInt32 * whole.Sign())
	}
	return int32(min(max(whole.Int64(), math.MinInt32), math.MaxInt32))
}

// isHundredPercent reports whether the amount is exactly 100 %.
func (a Amount) isHundredPercent() bool {
	return a.percent != nil && a.percent.Cmp(big.NewRat(100, 1)) == 0
}

// Scaled is p as a number of pods out of total, not clamped. The error names the field and its value.
func Scaled(field string, p intstr.IntOrString, total int32, r Rounding) (int32, error) {
	a, err := parseField(field, p)
	if err != nil {
		return 0, err
	}
	return a.ScaledTo(total, r), nil
}

func parseField(field string, p intstr.IntOrString) (Amount, error) {
	a, err := Parse(p)
	if err != nil {
		return Amount{}, fmt.Errorf("%s %q: %w", field, p.StrVal, err)
	}
	return a, nil
}

package action

import "time"

// longest is the duration of a number of seconds that is meant as unlimited, about 146 years. Times of this age differ
// from it by less than a duration can hold.
const longest = time.Duration(1 << 62)

// Seconds is the duration of a number of seconds, as fields of an API have it: from -longest to longest, for a number that
// is more than a duration can hold.
func Seconds[N ~int32 | ~int64](n N) time.Duration {
	return time.Duration(min(max(int64(n), -int64(longest/time.Second)), int64(longest/time.Second))) * time.Second
}

package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/flotilla-project/flotilla/core/testing/retries"
)

// RefusedForLong returns faults of a server that refuses one or two kinds of writes for minutes, without other faults,
// so that retries can be counted.
func RefusedForLong(seed uint64) Faults {
	rng := rand.New(rand.NewPCG(seed, 77)) //nolint:gosec // a simulation needs no secrecy
	f := Faults{Seed: seed}
	for range 1 + rng.IntN(2) {
		from := time.Duration(rng.IntN(120)) * time.Second
		r := retries.Refused{
			Write: retries.WriteKinds()[rng.IntN(len(retries.WriteKinds()))],
			Code:  retries.AnswerCodes()[rng.IntN(len(retries.AnswerCodes()))],
			From:  from,
			Until: from + time.Duration(1+rng.IntN(10))*time.Minute,
		}
		if r.Code == retries.NoRight {
			r.Write = retries.Right(r.Write)
		}
		f.Refused = append(f.Refused, r)
	}
	return f
}

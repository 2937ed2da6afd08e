package v1beta1

// The bounds of a pull that its policy leaves open.
const (
	// DefaultTimeoutSeconds limits one attempt.
	DefaultTimeoutSeconds = 600
	// DefaultBackoffLimit is how many attempts follow a failed first one.
	DefaultBackoffLimit = 3
	// LongestPauseSeconds is the longest pause between two attempts.
	LongestPauseSeconds = 30
)

// LongestSeconds is how long all attempts and the pauses between them take at most. A pull may end earlier, by
// activeDeadlineSeconds.
func (p *ImageTagPullPolicy) LongestSeconds() int64 {
	timeout := int64(DefaultTimeoutSeconds)
	retries := int64(DefaultBackoffLimit)
	if p != nil && p.TimeoutSeconds != nil && *p.TimeoutSeconds > 0 {
		timeout = int64(*p.TimeoutSeconds)
	}
	if p != nil && p.BackoffLimit != nil && *p.BackoffLimit >= 0 {
		retries = int64(*p.BackoffLimit)
	}
	return timeout*(retries+1) + LongestPauseSeconds*retries
}

// Package schedule computes when a cron is due.
//
// A schedule as users write it and a time zone go in; the last run that was due in a time, how many there were, and the
// next one come out. The built-in CronJob, which uses the same parser, has the same times. It is pure: the caller
// passes the time, and time zones are part of the binary. Its work is bounded however many runs were missed.
package schedule

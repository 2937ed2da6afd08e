// Package plan decides about one AdvancedCronJob: which runs are due, which jobs it makes, replaces and forgets, and
// its next status.
//
// A snapshot goes in; actions and the next status come out. It is pure, and one rule holds for jobs of every kind: a
// Child has the known facts about a job, whatever its kind. How often times are computed does not depend on how many
// runs were missed.
package plan

// Package load puts a steady load on something and measures how long each request waits.
//
// Requests begin at fixed times, whether or not earlier ones have been answered, and their times count from when they were
// to begin: what cannot keep up does not hide it. It is for benchmarks only, and knows no kinds.
package load

// Package seeds chooses the random worlds that a test plays. It is for tests only.
//
// The number of worlds goes in; a seed for each comes out. The first seed is 1, so that a test that fails does so by what
// was changed and not by the draw. With a text in environment variable FLOTILLA_SEED it is made from that: other worlds,
// and always the same ones for the same text.
//
// Flags of the test binary override that: -walk=SEED is the first seed, -walks=N the number of seeds from there on, and
// -soak=10m plays worlds until the time is over and writes a Report to the standard output.
package seeds

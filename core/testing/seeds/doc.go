// Package seeds chooses the random worlds that a test plays. It is for tests only.
//
// The number of worlds goes in; a seed for each comes out. The first seed comes from the commit (environment variable
// FLOTILLA_SEED, which the Makefiles set to the hash of the commit's tree): each commit plays new worlds, and the same
// commit always the same ones. Without the variable it is 1.
//
// Flags of the test binary override that: -walk=SEED is the first seed, -walks=N the number of seeds from there on, and
// -soak=10m plays worlds until the time is over and writes a Report to the standard output.
package seeds

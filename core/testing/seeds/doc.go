// Package seeds says which random worlds a test plays. It is for tests only.
//
// In: how many worlds a test wants. Out: a seed for each. The first seed comes from the commit
// (environment variable FLOTILLA_SEED, which the Makefiles set to the hash of the commit's tree): each commit
// meets new worlds, and the same commit always the same ones. Where nobody sets it, it is 1.
//
// Flags of the test binary say otherwise: -walk=SEED is the first seed, -walks=N how many follow each other,
// and -soak=10m plays worlds until the time is over and writes a Report to the standard output.
package seeds

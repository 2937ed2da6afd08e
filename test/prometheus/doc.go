// Command prometheus scrapes managers and evaluates rules and the expressions of a dashboard, with the parsers and the
// engine of Prometheus itself. It is a module of its own, so that nobody else depends on them; Prometheus as a whole
// would be almost four times as many packages to build.
//
// Time runs faster than real time: each scrape counts as a step of 15 seconds, so that expressions over an hour have
// their data in seconds. It prints a line of JSON for each alert that fires, and, when its input ends, one for each
// expression with how much data each of its selectors has. With flag draw it writes a picture of the dashboard, for which
// a step is best as long as the real time between two scrapes.
package main

// Command demo-app is the application of the demo and of the tests: a web server that returns its version and can be made to
// fail.
//
//	/         the version
//	/healthz  200 when ready, else 503
//	/env      the environment, sorted, one variable a line
//	/crash    ends the process with an error
//	/journal  the versions that were started, where a file for them is named
//
// The version and an order to crash come from files in the folder of the binary, so that images of several versions share the
// binary. It must end at once on SIGTERM, unless it is told to ignore that. "app sleep 5s" only sleeps.
package main

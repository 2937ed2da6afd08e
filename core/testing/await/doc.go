// Package await waits in tests until something holds.
//
// A test that waits says what must hold and never how long that may take: a machine that is busy takes longer, and that is
// no failure. Where a deadline is what is tested, the test steps a clock.
package await

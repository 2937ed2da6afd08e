package testenv

// What the tests of this package look at.
var (
	LeftBehind = (*Environment).leftBehind
	Bundle     = (*Environment).bundle
)

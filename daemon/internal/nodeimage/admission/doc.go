// Package admission has the defaults and the validation of NodeImage, and its webhooks.
//
// A request goes in, a patch or errors with field paths come out. It reads nothing but the request and the clock.
package admission

// Package admission holds the defaults and the rules of NodeImage, and the webhooks that apply them.
//
// A request goes in, a patch or field-addressed errors come out. It reads nothing but the request and the
// clock.
package admission

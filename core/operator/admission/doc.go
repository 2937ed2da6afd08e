// Package admission is the glue between the API server's webhook calls and the rules of a kind.
//
// The rules are written once, for the hub version of a kind. A Kind knows every served version: it decodes
// an object in the version that was sent, converts it to the hub, runs the rules there, and answers in the
// words of the version that was sent: field paths are mapped back, and defaults become a JSON patch that
// holds nothing but what they changed. Kinds of others, such as Pod, and their subresources are judged in the same way
// in the one version that their webhooks ask for. It must never change a field that the rules did not change, and it
// never reads or writes the cluster itself.
package admission

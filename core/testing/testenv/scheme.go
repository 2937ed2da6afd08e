package testenv

import (
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Scheme returns a scheme with the kinds of client-go and those that are added.
func Scheme(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range append(add, clientgoscheme.AddToScheme) {
		if err := add(scheme); err != nil {
			panic(err) // two kinds with the same name
		}
	}
	return scheme
}

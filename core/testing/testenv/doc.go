// Package testenv starts a real etcd and kube-apiserver once per test package.
//
// A package declares one Environment and runs its tests through it:
//
//	var env testenv.Environment
//
//	func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }
//
// A test then gets its own namespace, clients, a manager and the requests in the audit log from it. Binaries come from
// the folder named by KUBEBUILDER_ASSETS. Without it the tests that need a server are skipped; where the variable CI is
// set, they fail. Only tests may import this package.
package testenv

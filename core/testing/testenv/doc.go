// Package testenv starts a real etcd and kube-apiserver once per test package.
//
// A package declares one Environment and runs its tests through it:
//
//	var env testenv.Environment
//
//	func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }
//
// A test then asks for its own namespace, clients, a manager, and for what the audit log says
// about requests. Binaries come from the folder named by KUBEBUILDER_ASSETS; without it the tests
// that need a server are skipped, except under CI, where the run fails. Only tests may import it.
package testenv

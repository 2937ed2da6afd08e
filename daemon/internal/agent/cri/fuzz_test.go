package cri

import "testing"

// The annotations are those of the kubelet, which is of another version, and the info that of any runtime.
func FuzzDecode(f *testing.F) {
	f.Add("3", "1f", `{"httpGet":{"port":"http"}}`, `[{"containerPort":80}]`, "30", `{"runtimeSpec":{"process":{"env":["A=b","C"]}}}`)
	f.Add("-1", "x", "null", "null", "9223372036854775808", "null")
	f.Fuzz(func(_ *testing.T, count, hash, hook, ports, grace, info string) {
		decodeKubelet(nil, map[string]string{
			restartCountAnnotation: count, hashAnnotation: hash, preStopAnnotation: hook, portsAnnotation: ports,
			terminationGraceAnnotation: grace, deletionGraceAnnotation: grace,
		})
		decodeEnv(map[string]string{"info": info})
		splitID(info)
	})
}

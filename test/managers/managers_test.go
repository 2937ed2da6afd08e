package managers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

func TestServicesBecomeURLs(t *testing.T) {
	objects, err := overlays.Objects([]byte(`
kind: ValidatingWebhookConfiguration
apiVersion: v1
webhooks:
- clientConfig: {service: {name: a, path: /validate}}
---
kind: Service
apiVersion: v1
---
kind: Deployment
apiVersion: apps/v1
`))
	require.NoError(t, err)
	objects = asProcess(objects, "localhost:1")
	require.Len(t, objects, 1)
	got, err := objects[0].MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `{"kind": "ValidatingWebhookConfiguration", "apiVersion": "v1",
		"webhooks": [{"clientConfig": {"url": "https://localhost:1/validate"}}]}`, string(got))
}

func TestErrorsAreCountedByOrigin(t *testing.T) {
	assert.Equal(t, map[string]Repeated{"cloneset  reconciler error": {2, "b"}, "panic: oops": {1, ""}}, errorsIn(`
{"level":"info","msg":"started"}
{"level":"error","logger":"cloneset","msg":"reconciler error","error":"a"}
{"level":"error","logger":"cloneset","msg":"reconciler error","error":"b"}
{"level":"error","msg":"error received after stop sequence was engaged","error":"context canceled"}
panic: oops
`))
}

func TestControllersWorkOnceTheirCachesAreFilled(t *testing.T) {
	const (
		begins = `{"msg":"Starting EventSource","controller":"cloneset"}` + "\n"
		other  = `{"msg":"Starting EventSource","controller":"imagepulljob"}` + "\n"
		works  = `{"msg":"Starting workers","controller":"cloneset"}` + "\n"
	)
	assert.False(t, working("panic: oops\n"), "none has begun")
	assert.False(t, working(begins))
	assert.True(t, working(begins+works))
	assert.False(t, working(begins+other+works))
}

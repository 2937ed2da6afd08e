package fuzz

import "testing"

// Pods returns the JSON of pods with all that operators and clients write into a pod.
func Pods(tb testing.TB) [][]byte {
	tb.Helper()
	return Documents(tb, pods)
}

const pods = `
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop, uid: u, resourceVersion: "1"}
spec:
  containers: [{name: main, image: "nginx:1.25"}]
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  uid: u
  resourceVersion: "1"
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {app: web, controller-revision-hash: web-1, lifecycle.apps.kruise.io/state: Updating, apps.kruise.io/specified-delete: "true", pod-template-hash: "1"}
  annotations:
    controller.kubernetes.io/pod-deletion-cost: "-7"
    lifecycle.apps.kruise.io/timestamp: "2026-01-02T03:04:05Z"
    apps.kruise.io/container-launch-priority: Ordered
    apps.kruise.io/matched-workloadspread: '{"name":"web","subset":"a","uid":"u"}'
    apps.kruise.io/inplace-update-state: '{"revision":"web-2","updateTimestamp":"2026-01-02T03:04:05Z","updateEnvFromMetadata":true,"updateResources":true,
      "lastContainerStatuses":{"main":{"imageID":"sha256:1","containerID":"containerd://m"}},"nextContainerImages":{"main":"nginx:1.26"},
      "nextContainerRefMetadata":{"main":{"labels":{"app":"web"},"annotations":{"cfg":"a"}}},"nextContainerResources":{"main":{"limits":{"cpu":"1"}}},
      "preCheckBeforeNext":{"containersRequiredReady":["main"]},"containerBatchesRecord":[{"timestamp":"2026-01-02T03:04:05Z","containers":["main"]}]}'
    apps.kruise.io/inplace-update-grace: '{"revision":"web-2","containerImages":{"main":"nginx:1.26"},"containerRefMetadata":{"main":{"labels":{"app":"web"}}},
      "containerResources":{"main":{"limits":{"cpu":"1"}}},"metaDataPatch":"eyJtZXRhZGF0YSI6bnVsbH0=","graceSeconds":3}'
    apps.kruise.io/runtime-containers-meta: '{"containers":[{"name":"main","containerID":"containerd://m","restartCount":1,"hashes":{"plainHash":1,"extractedEnvFromMetadataHash":2}}]}'
    cfg: a
  ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web, uid: w, controller: true}]
  finalizers: [a/b]
  managedFields:
  - manager: flotilla-resize-2
    operation: Apply
    subresource: resize
    time: "2026-01-02T03:04:05Z"
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:containers": {'k:{"name":"main"}': {"f:resources": {"f:limits": {"f:cpu": {}}, "f:requests": {"f:cpu": {}}}}}}}
spec:
  nodeName: node-1
  terminationGracePeriodSeconds: 30
  readinessGates: [{conditionType: InPlaceUpdateReady}, {conditionType: KruisePodReady}]
  initContainers: [{name: proxy, image: "envoy@sha256:0", restartPolicy: Always}]
  containers:
  - name: main
    image: nginx:1.26
    resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 500m}}
    ports: [{name: http, containerPort: 80}]
    lifecycle: {preStop: {httpGet: {path: /, port: http}}}
    env:
    - {name: KRUISE_CONTAINER_PRIORITY, value: "7"}
    - {name: KRUISE_CONTAINER_BARRIER, valueFrom: {configMapKeyRef: {name: web-1-barrier, key: p_7}}}
    - {name: CFG, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['cfg']"}}}
  - {name: log, image: "registry.example.com:5000/log"}
  volumes: [{name: data, persistentVolumeClaim: {claimName: data-web-1}}]
status:
  phase: Running
  conditions:
  - {type: Ready, status: "True", lastTransitionTime: "2026-01-02T03:04:05Z"}
  - {type: InPlaceUpdateReady, status: "False", reason: StartInPlaceUpdate}
  - {type: KruisePodReady, status: "False", message: '[{"userAgent":"Lifecycle","key":"shop/web-1"}]'}
  containerStatuses:
  - name: main
    image: docker.io/library/nginx:1.26
    imageID: docker.io/library/nginx@sha256:1
    containerID: containerd://m
    restartCount: 2
    ready: true
    state: {running: {startedAt: "2026-01-02T03:04:05Z"}}
    lastState: {terminated: {exitCode: 1, startedAt: "2026-01-02T03:04:05Z", finishedAt: "2026-01-02T03:05:05Z"}}
    resources: {limits: {cpu: "1"}}
  - {name: log, image: log, imageID: "", containerID: "", state: {waiting: {reason: ImagePullBackOff, message: absent}}}
`

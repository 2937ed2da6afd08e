// Package v1beta1 holds the hub and storage versions of AdvancedCronJob, BroadcastJob, ImagePullJob and
// ImageListPullJob.
//
// It holds the types as they go over the wire, their registration and the names of their values. It must never hold
// behaviour: defaults and rules stand with the operator that serves the kinds, which also converts them from and to
// their other version.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1

//go:generate ../../../.tools/bin/controller-gen object paths=../...
//go:generate ../../../.tools/bin/controller-gen crd paths=../... output:crd:dir=../../config/crd
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service jobs-webhook -embedded spec.template.jobTemplate -embedded spec.template.broadcastJobTemplate.metadata -embedded spec.template.broadcastJobTemplate.spec.template -embedded spec.template.broadcastJobTemplate.spec.podFailurePolicy -embedded spec.template.imageListPullJobTemplate.metadata < apps.kruise.io_advancedcronjobs.yaml > advancedcronjobs.yaml"
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service jobs-webhook -embedded spec.template -embedded spec.podFailurePolicy < apps.kruise.io_broadcastjobs.yaml > broadcastjobs.yaml"
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service jobs-webhook < apps.kruise.io_imagepulljobs.yaml > imagepulljobs.yaml"
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service jobs-webhook < apps.kruise.io_imagelistpulljobs.yaml > imagelistpulljobs.yaml"
//go:generate sh -c "rm ../../config/crd/apps.kruise.io_*.yaml"

// Package certs creates and rotates the certificates of a webhook server without other components.
//
// A CA and a serving certificate live in one Secret, so that all replicas use the same; the CA's certificate is
// published where the API server looks for it: the caBundle of webhook configurations and of the conversion section of
// CRDs. A bundle or a Secret that others overwrite or delete is restored at once.
//
// It works as all controllers do: the Secret, the bundles and the time are a Snapshot; Authority.Plan decides and
// writes nothing; the Controller carries out the plan. A new CA is trusted everywhere before it signs, and an old one
// stays trusted until no replica uses it any more, so that no call fails in between:
//
//	Secret   trusted (bundle)      serving certificate signed by
//	  |      old                   old
//	  | prepare: a third of the old CA's life is left
//	  |      old + next            old
//	  | switch: every bundle holds both, and API servers had time to notice
//	  |      next + previous       next
//	  | drop: every replica had time to notice
//	  v      next                  next
//
// Deleting the Secret starts such a rotation at once, from the memory of the running replicas.
//
// It needs these permissions: get, list, watch and update on the one Secret, create on Secrets; get, list, watch and
// patch on the named configurations and CRDs. All but create can be restricted by resourceNames.
//
// It never writes anything but the Secret and clientConfig.caBundle, never writes when nothing differs, and never
// stores a private key on a disk.
package certs

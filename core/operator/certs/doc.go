// Package certs keeps the certificates of a webhook server without help from outside.
//
// A CA and a serving certificate live in one Secret, so that all replicas use the same; the CA's certificate
// is kept in every place where the API server looks for it: the caBundle of webhook configurations and of the
// conversion section of CRDs. What others overwrite or delete is put back at once.
//
// The way is the one of all controllers: the Secret, the bundles and the time are a Snapshot; Authority.Plan
// judges it and writes nothing; the Controller does what the plan says. A new CA is trusted everywhere before
// it signs, and an old one stays trusted until nobody uses it any more, so that no call fails on the way:
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
// Deleting the Secret starts such a rotation at once, from the memory of the replicas that run.
//
// What it may do has to be allowed by a role: get, list, watch and update on the one Secret, create on Secrets;
// get, list, watch and patch on the named configurations and CRDs. Names are enough everywhere but for create.
//
// It must never write anything but the Secret and clientConfig.caBundle, never write when nothing differs,
// and never put a private key on a disk.
package certs

// Package admission answers the API server about budgets, about disruptions of pods that budgets cover, and about the
// marks by which webhooks find them.
//
// A request about a pod goes in; it is allowed, or refused with the status that its client understands: an eviction with
// 429, which drains repeat, everything else with 403. The present state of a pod is read from the request once the cache or
// the server has confirmed that there is such a pod; for an eviction the server is asked.
package admission

// Package takeover is "flotilla takeover": kinds that OpenKruise's manager looks after become Flotilla's.
//
// The old manager has no switch for most kinds, so that it is made to leave them alone from outside: its webhook
// configurations lose their entries, a policy refuses its account, and it does not recognize their CRDs any more. All of
// that is planned by pure functions from the objects of the cluster; other kinds of the old manager are left as they are.
package takeover

// Package refusals remembers which writes the server refused, and when to try them again.
//
// Outcomes of actions go in, the refusals that a pass needs come out as action.Refusals. A process that restarts
// remembers nothing and tries once; nothing else is lost.
//
// # The states of an object
//
// For each purpose (verb, kind and reason of an action), the package knows the objects to which such a write was refused.
// The answer to the last try decides about the state of an object; late it stays for as long as it is remembered.
//
//	state      the answer                                  pause before the next try  in a status  others get its place
//	---------  ------------------------------------------  -------------------------  -----------  --------------------
//	transient  a conflict: within three tries, or with     1 2 4 8 16 30 s            no           no
//	           another writer who was first
//	refused    any other refusal, or no answer             1 2 4 8 16 30 s            yes          yes
//	byBudget   the refusal of a disruption budget, while   1 2 4 8 16 30 s, counted   as a wait    yes
//	           the pod is in service                       for all objects together
//	late       a refusal after other writes were done, or  10 20 30 s                 yes          yes
//	           of a dry run, or by a budget while an
//	           update holds the pod out of service
//
//	                 +------------ the last answer ------------+
//	                 |                    |                    |
//	                 v                    v                    v
//	           +-----------+         +---------+         +----------+
//	           | transient |  <--->  | refused |  <--->  | byBudget |
//	           +-----------+         +---------+         +----------+
//	                 |                    |                    |
//	                 +--------- an answer that is late --------+
//	                                      v
//	                                  +------+
//	                                  | late |
//	                                  +------+
//
// The server takes the write: the object is forgotten, whatever its state.
//
// The server does not know the purpose of a write: the pauses of an object grow with each refusal but conflicts, whatever
// for. They continue where the purpose changes and where it changes back.
//
// Whatever follows a first write is sent as a dry run first, unless only budgets have refused the purpose.
//
// The time moves it, too. Before its turn it waits. At its turn it may be tried. If it is not tried for long after its
// turn, it is overdue: no plan seems to want it, so it gets no turns and its answer is reported last. Ten minutes after
// its turn it is forgotten.
//
// An object with an unanswered write has that mark in every state: its first write is sent as a dry run, too.
//
// # The state of a purpose
//
// A refusal is suspected to hold for all objects of its purpose. While the streak, the refusals since the last success,
// is not 0, one action of the purpose is tried at a time, and none before the pause of the purpose is over, which grows
// with the streak. Objects of one purpose, and purposes of one object, take turns: the pause of each is multiplied by
// their number, so that one of them is tried twice a minute in the long run. Causes that affect one object only, such as a
// name that is taken or a node that is too small, and transient conflicts on objects that exist, leave the streak as it is.
//
// # What follows from events
//
//	event                              the object                     others of its purpose      other purposes of the object
//	---------------------------------  -----------------------------  -------------------------  ------------------------------
//	a try fails                        its state, a longer pause      the pause of the purpose   -
//	the server takes the write         is forgotten                   the streak ends; they      they wait as if they were
//	                                                                  wait as if they were       alone; those for another
//	                                                                  alone                      revision are due if no spec
//	                                                                                             has changed, else forgotten,
//	                                                                                             and what is left of their
//	                                                                                             purpose waits as if alone
//	the workload is edited             due                            due                        due
//	one more pod is available          due, if it is a pod that       as the object              as the object
//	                                   exists, and is not late; two
//	                                   seconds later if byBudget
//	a newer version of the object      due, if transient              -                          -
//	ten minutes pass after its turn    is forgotten                   -                          -
//	the workload is gone or replaced   is forgotten                   is forgotten               is forgotten
//
// No other event cuts a pause short.
//
// The package must never write, and never choose a write.
package refusals

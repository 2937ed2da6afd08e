// Package operator runs the passes of a planner in a world: view, plan, write.
//
// A Planner and a world go in; the writes of its plans come out, carried out by package progress as an operator on a server
// does. Requests of actions that are under way take turns. Play goes on until nothing is left to do.
//
//	            ┌──────────────────────────────────┐
//	            ▼                                  │
//	View ─► Planner.Plan ─► progress.Run ─► Request ─► server ─► Report
//	  ▲                                      ▲
//	Settings.Look                      Settings.Send
//
// By itself an operator meets no fault: its view shows the present and the server gets each request. Settings are where others
// put faults, such as package simulate of core/testing.
package operator

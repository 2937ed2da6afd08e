// Package advancedcronjob is the controller of AdvancedCronJob. It makes Jobs, BroadcastJobs and ImageListPullJobs when
// the schedule says so.
//
// Each kind of jobs has a controller of its own, over the AdvancedCronJobs whose template is of that kind: one that the
// cluster does not serve holds up nobody else. Such a controller says so, and begins when the kind appears.
package advancedcronjob

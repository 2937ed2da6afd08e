// Package advancedcronjob is the controller of AdvancedCronJob. It makes Jobs, BroadcastJobs and ImageListPullJobs on
// schedule.
//
// Each kind of jobs has a controller of its own, over the AdvancedCronJobs with a template of that kind: a kind that
// the cluster does not serve blocks no other kind. The controller of such a kind reports this, and begins when the kind
// appears.
package advancedcronjob

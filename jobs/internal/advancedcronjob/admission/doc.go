// Package admission has the defaults and the validation of AdvancedCronJobs.
//
// The rules are pure, except for the rules of Jobs and of pods: dry runs ask the cluster itself about these. Templates
// are stored as they were written: absent fields are filled in when two templates are compared.
package admission

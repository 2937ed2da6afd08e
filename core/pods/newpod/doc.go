// Package newpod makes the pods and claims that a workload creates from its templates.
//
// The input is a template and the workload's additions to it. The output is an object that is ready to be created. It
// shares nothing with the template. The workload decides its name, labels and owner.
package newpod

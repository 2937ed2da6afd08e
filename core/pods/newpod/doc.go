// Package newpod makes the pods and claims that a workload creates from its templates.
//
// A template and what the workload adds to it go in; an object that is ready to be created comes out.
// It shares nothing with the template. Which name, labels and owner it gets is the workload's to say.
package newpod

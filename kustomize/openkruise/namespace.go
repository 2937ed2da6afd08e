package openkruise

import "fmt"

// WholeCluster refuses the takeover of a feature with an operator that is restricted to a namespace, empty for none:
// OpenKruise leaves the kinds alone in all namespaces. Of a feature that has changed hands already the operator must stay.
func WholeCluster(feature, namespace string, taken bool) error {
	if namespace == "" {
		return nil
	}
	help := "Remove the operator first: flotilla uninstall " + feature
	if taken {
		help = fmt.Sprintf("Install it for all namespaces first: flotilla install %s --defaults", feature)
	}
	return fmt.Errorf("the operator is restricted to namespace %s, but a takeover covers all namespaces, because OpenKruise stops managing the "+
		"kinds in all of them. %s", namespace, help)
}

// MayRestrict refuses to restrict the operator of a feature to a namespace, empty for none, while OpenKruise may not look
// after the objects in the others.
func (p Presence) MayRestrict(feature, namespace string) error {
	handover, taken := p.Handovers[feature]
	if namespace == "" || !taken || !p.There() {
		return nil
	}
	return fmt.Errorf("%s was taken over from OpenKruise: with --only-namespace %s, its kinds have no controller in the other namespaces. "+
		"Omit the flag, or give the feature back first: %s", feature, namespace, handover.Undo())
}

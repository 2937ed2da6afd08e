package conversion

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/operator/conversion"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// recreateToHub fills an empty hub object from a v1alpha1 one.
func recreateToHub(src *v1alpha1.ContainerRecreateRequest, dst *v1beta1.ContainerRecreateRequest) error {
	if err := recode(src, dst); err != nil {
		return err
	}
	dst.TypeMeta = metav1.TypeMeta{}
	conversion.TakeAnnotation(&dst.ObjectMeta, v1beta1.SyncContainerStatusesAnnotation, &dst.Status.ContainerStatusSnapshot)
	conversion.TakeAnnotation(&dst.ObjectMeta, v1beta1.ConditionsAnnotation, &dst.Status.Conditions)
	text := dst.Annotations[v1beta1.UnreadyAcquiredAnnotation]
	delete(dst.Annotations, v1beta1.UnreadyAcquiredAnnotation)
	if since, err := time.Parse(time.RFC3339, text); err == nil {
		setGrace(&dst.Status, metav1.NewTime(since))
	} else {
		dropGrace(&dst.Status)
	}
	return nil
}

// recreateFromHub fills an empty v1alpha1 object from the hub.
func recreateFromHub(src *v1beta1.ContainerRecreateRequest, dst *v1alpha1.ContainerRecreateRequest) error {
	if err := recode(src, dst); err != nil {
		return err
	}
	dst.TypeMeta = metav1.TypeMeta{}
	for _, key := range []string{v1beta1.SyncContainerStatusesAnnotation, v1beta1.UnreadyAcquiredAnnotation, v1beta1.ConditionsAnnotation} {
		delete(dst.Annotations, key)
	}
	if grace := graceOf(&src.Status); grace != nil {
		metav1.SetMetaDataAnnotation(&dst.ObjectMeta, v1beta1.UnreadyAcquiredAnnotation, grace.LastTransitionTime.UTC().Format(time.RFC3339))
	}
	if len(src.Status.ContainerStatusSnapshot) > 0 {
		if err := conversion.PutAnnotation(&dst.ObjectMeta, v1beta1.SyncContainerStatusesAnnotation, src.Status.ContainerStatusSnapshot); err != nil {
			return err
		}
	}
	if says := src.Status.Conditions; len(says) > 1 || len(says) == 1 && !equality.Semantic.DeepEqual(says[0], plainGrace(says[0].LastTransitionTime)) {
		return conversion.PutAnnotation(&dst.ObjectMeta, v1beta1.ConditionsAnnotation, says)
	}
	return nil
}

// graceOf returns the condition that v1alpha1 has as an annotation, nil unless it is True.
func graceOf(status *v1beta1.ContainerRecreateRequestStatus) *metav1.Condition {
	grace := meta.FindStatusCondition(status.Conditions, v1beta1.PreRecreateGrace)
	if grace == nil || grace.Status != metav1.ConditionTrue {
		return nil
	}
	return grace
}

// plainGrace returns the condition that the annotation alone means.
func plainGrace(since metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type:               v1beta1.PreRecreateGrace,
		Status:             metav1.ConditionTrue,
		LastTransitionTime: since,
		Reason:             v1beta1.PreRecreateGrace,
		Message:            v1beta1.PreRecreateGraceMessage,
	}
}

// setGrace sets the condition from the annotation. If it is set already, its other fields are kept.
func setGrace(status *v1beta1.ContainerRecreateRequestStatus, since metav1.Time) {
	if grace := graceOf(status); grace != nil && grace.LastTransitionTime.Equal(&since) {
		return
	}
	at := slices.IndexFunc(status.Conditions, isGrace)
	if at < 0 {
		status.Conditions = append(status.Conditions, plainGrace(since))
		return
	}
	status.Conditions[at] = plainGrace(since)
}

// dropGrace removes the condition when its annotation is gone.
func dropGrace(status *v1beta1.ContainerRecreateRequestStatus) {
	if graceOf(status) != nil {
		status.Conditions = slices.DeleteFunc(status.Conditions, isGrace)
	}
}

func isGrace(c metav1.Condition) bool { return c.Type == v1beta1.PreRecreateGrace }

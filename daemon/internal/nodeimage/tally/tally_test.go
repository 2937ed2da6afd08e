package tally_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

func TestOnlyRoundsOfTheSpecCount(t *testing.T) {
	object := &v1beta1.NodeImage{
		Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{
			"nginx": {Tags: []v1beta1.ImageTagSpec{{Tag: "1"}, {Tag: "2", Version: 1}, {Tag: "3"}, {Tag: "4"}}},
			"redis": {Tags: []v1beta1.ImageTagSpec{{Tag: "1"}, {Tag: "2"}}},
		}},
		Status: v1beta1.NodeImageStatus{
			Failed: 9,
			ImageStatuses: map[string]v1beta1.ImageStatus{
				"nginx": {Tags: []v1beta1.ImageTagStatus{
					{Tag: "1", Phase: v1beta1.ImageWaiting},
					{Tag: "2", Phase: v1beta1.ImageSucceeded}, // of the round before
					{Tag: "3", Phase: v1beta1.ImageSucceeded},
					{Tag: "4", Phase: v1beta1.ImagePulling},
				}},
				"redis": {Tags: []v1beta1.ImageTagStatus{{Tag: "1", Phase: v1beta1.ImageFailed}, {Tag: "9", Phase: v1beta1.ImageFailed}}},
				"gone":  {Tags: []v1beta1.ImageTagStatus{{Tag: "1", Phase: v1beta1.ImageSucceeded}}},
			},
		},
	}

	tally.Count(object)

	object.Status.ImageStatuses = nil
	assert.Equal(t, v1beta1.NodeImageStatus{Desired: 6, Waiting: 1, Pulling: 1, Succeeded: 1, Failed: 1}, object.Status)
}

package story

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = "# Page\n\n    kubectl apply -f web.yaml\n\n```\nweb applied\n```\n\nSave this as `web.yaml`:\n\n```yaml\na:\n    b: 1\n```\n\n" +
	"    git clone x\n    make\n\n```\nfirst\n    second\n```\n"

func TestATutorialHasStepsAndFiles(t *testing.T) {
	read, err := parseTutorial(page)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"web.yaml": "a:\n    b: 1\n"}, read.Files)
	assert.Equal(t, []Step{
		{"kubectl apply -f web.yaml", "web applied\n"}, {"git clone x", ""}, {"make", "first\n    second\n"},
	}, read.Steps)

	_, err = parseTutorial(page + "\n```\nonce more\n```\n")
	assert.EqualError(t, err, "the page has an output without its command:\nonce more\n")
}

func TestGeneralOutputsAreTheSameOnAllClusters(t *testing.T) {
	const one = "NAME        UID                                    IP           IMAGE   N   AGE\n" +
		"web-9dwbn   580501d2-fcba-41b1-b168-273328ce285f   10.244.1.7   a:1     0   20s\n"
	const other = "NAME        UID                                    IP              IMAGE   N   AGE\n" +
		"web-x7kq2   e8198465-16c9-44f2-8ad0-f4e9f9542ff9   192.168.100.7   a:1     0   1m2s\n"
	assert.Equal(t, "NAME UID IP IMAGE N AGE\nweb-POD UID IP a:1 0 AGE", General(one))
	assert.Equal(t, General(one), General(other))
	const kept = `customresourcedefinition.apiextensions.k8s.io "clonesets.apps.kruise.io" deleted`
	assert.Equal(t, kept, General(kept+"\n"))
}

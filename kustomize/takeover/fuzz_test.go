package takeover

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The record is a ConfigMap that any client with the right can write. A record that is read can be written and read again.
func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"definitions":{"a":{"spec":1}},"labels":{"a":{"b":"c"}},"annotations":null,"gates":["A"],"webhooks":{"a":{"list":[{"name":"x"}],"template":[]}}}`))
	f.Add([]byte(`{"webhooks":{"a":1},"labels":[],"gates":[1]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		_, err := writer.Write(text)
		require.NoError(t, err)
		require.NoError(t, writer.Close())
		for _, data := range [][]byte{text, packed.Bytes()} {
			object := &unstructured.Unstructured{Object: map[string]any{
				"binaryData": map[string]any{recordKey: base64.StdEncoding.EncodeToString(data)},
			}}
			record, err := readRecord(object)
			if err != nil {
				continue
			}
			require.NoError(t, record.write(object))
			again, err := readRecord(object)
			require.NoError(t, err)
			assert.Equal(t, record.Labels, again.Labels)
			assert.Equal(t, record.Definitions, again.Definitions)
		}
	})
}

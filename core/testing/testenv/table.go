package testenv

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
)

// Table is what kubectl shows of the objects of a namespace: the names of the columns, and the cells of each object.
func (e *Environment) Table(t testing.TB, resource schema.GroupVersionResource, namespace string) (columns []string, rows [][]any) {
	t.Helper()
	transport, err := rest.HTTPClientFor(e.Config)
	require.NoError(t, err)
	url := strings.TrimSuffix(e.Config.Host, "/") + "/apis/" + resource.GroupVersion().String() + "/namespaces/" + namespace + "/" + resource.Resource
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := transport.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(raw))
	var table metav1.Table
	require.NoError(t, json.Unmarshal(raw, &table))
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	for i := range table.Rows {
		rows = append(rows, table.Rows[i].Cells)
	}
	return columns, rows
}

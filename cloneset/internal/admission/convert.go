package admission

import (
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/cloneset/internal/conversion"
)

// converting answers conversion requests on the bytes of the objects: a round trip through Go types would
// rewrite templates, and users' tools would see differences that nobody made.
func converting() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no conversion request", http.StatusBadRequest)
			return
		}
		review.Response = convert(review.Request)
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		// An error means that the API server has gone.
		_ = json.NewEncoder(w).Encode(review)
	})
}

// convert converts all objects or none.
func convert(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for i := range request.Objects {
		converted, err := conversion.Convert(request.Objects[i].Raw, request.DesiredAPIVersion)
		if err != nil {
			message := fmt.Sprintf("convert object %d of the request: %v", i, err)
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: message}
			response.ConvertedObjects = nil
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}

// Command probe tells, in its log and to whoever connects to port 8080, what the API server answers at the address that
// every pod is told.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	url := "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")) + "/healthz"
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer := "no answer from " + url
	if response, err := client.Get(url); err == nil {
		body, _ := io.ReadAll(response.Body)
		answer = fmt.Sprintf("%s answers %s", url, body)
	}
	fmt.Println(answer)
	_ = http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, answer)
	}))
}

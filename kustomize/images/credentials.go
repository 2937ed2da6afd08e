package images

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// credentials are what a user's container tool knows about a registry. All fields are empty if it knows nothing.
type credentials struct {
	user, password string
	// identity is a token that the token server of the registry exchanges, in place of user and password.
	identity string
}

// dockerHub is the key of docker.io in the files of container tools.
const dockerHub = "index.docker.io"

// toolConfig is the file of a container tool.
type toolConfig struct {
	Auths   map[string]toolAuth `json:"auths"`
	Helpers map[string]string   `json:"credHelpers"`
	Store   string              `json:"credsStore"`
}

type toolAuth struct {
	Auth     string `json:"auth"`
	User     string `json:"username"`
	Password string `json:"password"`
	Identity string `json:"identitytoken"`
}

// configFiles are the files in which container tools keep credentials, the first one first.
func configFiles(getenv func(string) string, home string) []string {
	var files []string
	if file := getenv("REGISTRY_AUTH_FILE"); file != "" {
		files = append(files, file)
	}
	docker := filepath.Join(home, ".docker")
	if folder := getenv("DOCKER_CONFIG"); folder != "" {
		docker = folder
	}
	files = append(files, filepath.Join(docker, "config.json"))
	if folder := getenv("XDG_RUNTIME_DIR"); folder != "" {
		files = append(files, filepath.Join(folder, "containers", "auth.json"))
	}
	return files
}

// userCredentials returns what the container tools of the user know about a registry.
func userCredentials(ctx context.Context, registry string) (credentials, error) {
	home, _ := os.UserHomeDir() // without one the other files count
	for _, file := range configFiles(os.Getenv, home) {
		text, err := os.ReadFile(file) //nolint:gosec // the user's own file
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return credentials{}, fmt.Errorf("read the credentials of container tools: %w", err)
		}
		var config toolConfig
		if err := json.Unmarshal(text, &config); err != nil {
			return credentials{}, fmt.Errorf("parse the credentials of container tools in %s: %w", file, err)
		}
		found, err := config.find(ctx, registry)
		if err != nil {
			return credentials{}, fmt.Errorf("read the credentials of %s by %s: %w", registry, file, err)
		}
		if found != (credentials{}) {
			return found, nil
		}
	}
	return credentials{}, nil
}

// find returns the credentials of a registry: of its own helper, of the entry in the file, or of the helper for all.
func (c toolConfig) find(ctx context.Context, registry string) (credentials, error) {
	for host, helper := range c.Helpers {
		if hostOf(host) == registry {
			return askHelper(ctx, helper, host)
		}
	}
	for host, auth := range c.Auths {
		if hostOf(host) != registry {
			continue
		}
		if found, err := auth.read(); err != nil || found != (credentials{}) {
			return found, err
		}
	}
	switch {
	case c.Store == "":
		return credentials{}, nil
	case registry == dockerHub:
		return askHelper(ctx, c.Store, "https://"+dockerHub+"/v1/")
	}
	return askHelper(ctx, c.Store, registry)
}

// hostOf returns the registry of a key, which may be an address with a scheme and a path.
func hostOf(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, _, _ := strings.Cut(key, "/")
	if host == "docker.io" {
		return dockerHub
	}
	return host
}

func (a toolAuth) read() (credentials, error) {
	found := credentials{user: a.User, password: a.Password, identity: a.Identity}
	if a.Auth == "" {
		return found, nil
	}
	text, err := base64.StdEncoding.DecodeString(a.Auth)
	if err != nil {
		return credentials{}, errors.New("field auth is not base64") // the error of the decoder may quote it
	}
	user, password, divided := strings.Cut(strings.TrimRight(string(text), "\x00"), ":")
	if !divided {
		return credentials{}, errors.New("field auth is not USER:PASSWORD")
	}
	found.user, found.password = user, password
	return found, nil
}

// notFound is in the output of a helper that knows nothing about a registry.
const notFound = "credentials not found"

// askHelper runs a credential helper of the user's container tools.
func askHelper(ctx context.Context, helper, server string) (credentials, error) {
	program := "docker-credential-" + helper
	command := exec.CommandContext(ctx, program, "get") //nolint:gosec // the user's configuration names it
	command.Stdin = strings.NewReader(server)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	if err := command.Run(); err != nil {
		if strings.Contains(out.String()+errOut.String(), notFound) {
			return credentials{}, nil
		}
		return credentials{}, fmt.Errorf("run %s: %w: %s", program, err, strings.TrimSpace(errOut.String()))
	}
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return credentials{}, fmt.Errorf("the output of %s is no JSON object", program)
	}
	if answer.Username == "<token>" {
		return credentials{identity: answer.Secret}, nil
	}
	return credentials{user: answer.Username, password: answer.Secret}, nil
}

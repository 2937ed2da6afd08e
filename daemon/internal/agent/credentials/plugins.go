package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	kubeletv1 "k8s.io/kubelet/config/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

const (
	pluginTimeout    = 60 * time.Second
	pluginAPIVersion = "credentialprovider.kubelet.k8s.io/v1"
	// maxCachedResponses bounds the memory of one plugin.
	maxCachedResponses = 256
)

// PluginConfig has the paths of plugins.
type PluginConfig struct {
	// File is a CredentialProviderConfig of kubelet.config.k8s.io/v1; a missing file means no plugins.
	File string
	// Folder holds the programs, by the names in the file.
	Folder string
	// Environ is the environment that plugins get in addition to their own.
	Environ []string
	Clock   clock.PassiveClock
	Log     logr.Logger
}

// Plugins are credential provider plugins as the kubelet knows them.
type Plugins struct {
	config  PluginConfig
	plugins []*plugin
}

// plugin is one program. Its lock makes it run once at a time.
type plugin struct {
	kubeletv1.CredentialProvider

	mu      sync.Mutex
	answers map[string]cachedResponse
}

type cachedResponse struct {
	entries []Entry
	until   time.Time
}

// LoadPlugins reads the configuration. The error names the file and the fault.
func LoadPlugins(config PluginConfig) (*Plugins, error) {
	text, err := os.ReadFile(config.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read plugin configuration: %w", err)
	}
	plugins, err := parsePlugins(text)
	if err != nil {
		return nil, fmt.Errorf("read plugin configuration %s: %w", config.File, err)
	}
	return &Plugins{config: config, plugins: plugins}, nil
}

// parsePlugins reads the text of a CredentialProviderConfig.
func parsePlugins(text []byte) ([]*plugin, error) {
	var file kubeletv1.CredentialProviderConfig
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, err
	}
	var all []*plugin
	for i := range file.Providers {
		if err := check(&file.Providers[i]); err != nil {
			return nil, fmt.Errorf("providers[%d]: %w", i, err)
		}
		all = append(all, &plugin{CredentialProvider: file.Providers[i], answers: map[string]cachedResponse{}})
	}
	return all, nil
}

func check(provider *kubeletv1.CredentialProvider) error {
	switch {
	case provider.Name == "" || strings.ContainsAny(provider.Name, `/\ `) || provider.Name == "." || provider.Name == "..":
		return fmt.Errorf("name: %q must be the name of a file", provider.Name)
	case provider.APIVersion != pluginAPIVersion:
		return fmt.Errorf("apiVersion: unsupported value %q: use %s", provider.APIVersion, pluginAPIVersion)
	case len(provider.MatchImages) == 0:
		return errors.New("matchImages: name at least one")
	case provider.DefaultCacheDuration == nil || provider.DefaultCacheDuration.Duration < 0:
		return errors.New("defaultCacheDuration: must be 0 or more")
	case provider.TokenAttributes != nil:
		return errors.New("tokenAttributes: unsupported, because images are pulled without a pod and its ServiceAccount")
	}
	return nil
}

// For asks the plugins that are for an image. One that fails is logged and counts as absent.
func (p *Plugins) For(ctx context.Context, image string) []Entry {
	var all []Entry
	target := parseLocation(image)
	for _, one := range p.plugins {
		if !one.isFor(target) {
			continue
		}
		entries, err := p.entries(ctx, one, image)
		if err != nil {
			p.config.Log.Info("Credential provider plugin failed", "plugin", one.Name, "reason", err.Error())
			continue
		}
		all = append(all, entries...)
	}
	return all
}

// Forget drops the answers of the plugins for an image.
func (p *Plugins) Forget(image string) {
	target := parseLocation(image)
	for _, one := range p.plugins {
		if !one.isFor(target) {
			continue
		}
		one.mu.Lock()
		for _, key := range keysOf(image) {
			delete(one.answers, key)
		}
		one.mu.Unlock()
	}
}

// isFor reports whether a plugin is asked for an image.
func (p *plugin) isFor(image location) bool {
	return slices.ContainsFunc(p.MatchImages, func(glob string) bool { return parseLocation(glob).matches(image) })
}

// keysOf returns the keys under which answers for an image may be kept: for all images, its registry, its repository.
func keysOf(image string) []string { return []string{"", registryOf(image), withoutTag(image)} }

// entries returns the kept answer of a plugin, or runs the plugin.
func (p *Plugins) entries(ctx context.Context, one *plugin, image string) ([]Entry, error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	now := p.config.Clock.Now()
	repository := withoutTag(image)
	registry := registryOf(image)
	for _, key := range keysOf(image) {
		if known, found := one.answers[key]; found && now.Before(known.until) {
			return known.entries, nil
		}
	}
	output, err := p.run(ctx, one, repository)
	if err != nil {
		return nil, err
	}
	response, entries, err := parseResponse(output)
	if err != nil {
		return nil, err
	}
	keys := map[providerv1.PluginCacheKeyType]string{
		providerv1.GlobalPluginCacheKeyType:   "",
		providerv1.RegistryPluginCacheKeyType: registry,
		providerv1.ImagePluginCacheKeyType:    repository,
	}
	key, known := keys[response.CacheKeyType]
	if !known {
		return nil, fmt.Errorf("its output has unsupported cacheKeyType %q", response.CacheKeyType)
	}
	life := one.DefaultCacheDuration.Duration
	if response.CacheDuration != nil {
		life = response.CacheDuration.Duration
	}
	if len(one.answers) >= maxCachedResponses {
		clear(one.answers)
	}
	one.answers[key] = cachedResponse{entries: entries, until: now.Add(life)}
	return entries, nil
}

// parseResponse reads the output of a plugin. It may hold secrets, and is not quoted.
func parseResponse(output []byte) (response providerv1.CredentialProviderResponse, entries []Entry, err error) {
	if json.Unmarshal(output, &response) != nil || response.APIVersion != pluginAPIVersion {
		return response, nil, errors.New("its output must be a CredentialProviderResponse of " + pluginAPIVersion)
	}
	for _, place := range slices.Sorted(maps.Keys(response.Auth)) {
		auth := response.Auth[place]
		entries = append(entries, Entry{Location: place, Auth: cri.Auth{Username: auth.Username, Password: auth.Password}})
	}
	return response, entries, nil
}

// run runs a plugin and returns its output.
func (p *Plugins) run(ctx context.Context, one *plugin, image string) ([]byte, error) {
	request := providerv1.CredentialProviderRequest{Image: image}
	request.APIVersion = pluginAPIVersion
	request.Kind = "CredentialProviderRequest"
	input, err := json.Marshal(&request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pluginTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(p.config.Folder, one.Name), one.Args...)
	command.Env = slices.Clone(p.config.Environ)
	for _, variable := range one.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	command.Stdin = bytes.NewReader(input)
	command.WaitDelay = time.Second // a child that it leaves behind keeps its output open
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	return output, nil
}

// withoutTag cuts tag and digest off a full reference.
func withoutTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		return image[:colon]
	}
	return image
}

func registryOf(image string) string {
	registry, _, _ := strings.Cut(image, "/")
	return registry
}

package release

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
)

// unspecified is SPDX's word for a fact that was not examined.
const unspecified = "NOASSERTION"

// notInIDs are the characters that an SPDX identifier may not have.
var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// sbom writes the modules that a binary is linked of, as an SPDX 2.3 document.
func (o Options) sbom(r Release, binary, name, platform string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the modules of %s: %w", name, err)
	}
	text, err := json.MarshalIndent(document(info, name, r.To, platform, o.Date), "", " ")
	if err != nil {
		return fmt.Errorf("encode the SBOM of %s: %w", name, err)
	}
	file := filepath.Join(o.assets(r), sbomOf(name, r.To, platform))
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // for everybody
}

// sbomOf returns the name of the file with the SBOM of a binary.
func sbomOf(name, version, platform string) string {
	return name + "-" + version + "-" + platform + ".spdx.json"
}

// listSBOMs adds the images of a release to the list sboms: one line for each image of a platform, with its digest and the
// file of its SBOM.
func (o Options) listSBOMs(r Release, built []images.Image, platforms []string) error {
	at, err := layout.ImageIndexFromPath(filepath.Join(o.Output, "images"))
	if err != nil {
		return fmt.Errorf("open the images: %w", err)
	}
	var lines strings.Builder
	for _, image := range built {
		of, err := ofPlatforms(at, image, platforms)
		if err != nil {
			return fmt.Errorf("read image %s: %w", image.Reference, err)
		}
		repository, _, _ := strings.Cut(image.Reference, ":"+r.To)
		for _, platform := range platforms {
			file := sbomOf(repositoryOf(image), r.To, strings.ReplaceAll(platform, "/", "_"))
			fmt.Fprintf(&lines, "%s@%s %s/%s\n", repository, of[platform], folderOf(r), file)
		}
	}
	list, err := os.OpenFile(filepath.Join(o.Output, "sboms"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // for everybody
	if err != nil {
		return err
	}
	_, err = list.WriteString(lines.String())
	return errors.Join(err, list.Close())
}

// ofPlatforms returns the digests of the images of an index, by platform.
func ofPlatforms(at v1.ImageIndex, image images.Image, platforms []string) (map[string]string, error) {
	if len(platforms) == 1 {
		return map[string]string{platforms[0]: image.Digest}, nil
	}
	digest, err := v1.NewHash(image.Digest)
	if err != nil {
		return nil, err
	}
	index, err := at.ImageIndex(digest)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, m := range manifest.Manifests {
		found[m.Platform.String()] = m.Digest.String()
	}
	return found, nil
}

func document(info *debug.BuildInfo, name, version, platform string, date time.Time) *v2_3.Document {
	main := newPackage(info.Main.Path, version)
	packages := []*v2_3.Package{main, newPackage("stdlib", info.GoVersion)}
	for _, dependency := range info.Deps {
		packages = append(packages, newPackage(dependency.Path, dependency.Version))
	}
	relationships := []*v2_3.Relationship{relation("DOCUMENT", "DESCRIBES", main.PackageSPDXIdentifier)}
	for _, p := range packages[1:] {
		relationships = append(relationships, relation(main.PackageSPDXIdentifier, "DEPENDS_ON", p.PackageSPDXIdentifier))
	}
	return &v2_3.Document{
		SPDXVersion:       v2_3.Version,
		DataLicense:       v2_3.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      name,
		DocumentNamespace: "https://" + repository + "sbom/" + name + "/" + url.PathEscape(version) + "/" + platform,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "flotilla-release"}},
			Created:  date.UTC().Format(time.RFC3339),
		},
		Packages:      packages,
		Relationships: relationships,
	}
}

func newPackage(path, version string) *v2_3.Package {
	return &v2_3.Package{
		PackageName:             path,
		PackageVersion:          version,
		PackageDownloadLocation: unspecified,
		PackageSPDXIdentifier:   common.ElementID("Package-" + notInIDs.ReplaceAllString(path+"-"+version, "-")),
		PackageLicenseConcluded: unspecified,
		PackageLicenseDeclared:  unspecified,
		PackageCopyrightText:    unspecified,
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager,
			RefType:  "purl",
			Locator:  "pkg:golang/" + path + "@" + url.PathEscape(version),
		}},
	}
}

func relation(from common.ElementID, kind string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{
		RefA:         common.DocElementID{ElementRefID: from},
		Relationship: kind,
		RefB:         common.DocElementID{ElementRefID: to},
	}
}

package release

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// unspecified is SPDX's word for what nobody has looked into.
const unspecified = "NOASSERTION"

// notInIDs are the characters that an SPDX identifier may not have.
var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// writeSBOM writes what modules a binary is linked of, as an SPDX 2.3 document.
func writeSBOM(binary, name, version, file string, date time.Time) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read what %s is linked of: %w", name, err)
	}
	text, err := json.MarshalIndent(document(info, name, version, date), "", " ")
	if err != nil {
		return fmt.Errorf("encode the SBOM of %s: %w", name, err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // for everybody
}

func document(info *debug.BuildInfo, name, version string, date time.Time) *v2_3.Document {
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
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://" + repository + "sbom/" + name + "/" + url.PathEscape(version),
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "flotilla-release"}},
			Created:  date.UTC().Format(time.RFC3339),
		},
		Packages: packages, Relationships: relationships,
	}
}

func newPackage(path, version string) *v2_3.Package {
	return &v2_3.Package{
		PackageName: path, PackageVersion: version, PackageDownloadLocation: unspecified,
		PackageSPDXIdentifier:   common.ElementID("Package-" + notInIDs.ReplaceAllString(path+"-"+version, "-")),
		PackageLicenseConcluded: unspecified, PackageLicenseDeclared: unspecified, PackageCopyrightText: unspecified,
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: "purl", Locator: "pkg:golang/" + path + "@" + url.PathEscape(version),
		}},
	}
}

func relation(from common.ElementID, kind string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, Relationship: kind, RefB: common.DocElementID{ElementRefID: to},
	}
}

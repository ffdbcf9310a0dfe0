package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The fields of CycloneDX 1.6 that a bill of materials for packages needs.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []part       `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string `json:"timestamp,omitempty"`
		Component part   `json:"component"`
	}
	part struct {
		Type     string      `json:"type"`
		Ref      string      `json:"bom-ref"`
		Supplier *supplier   `json:"supplier,omitempty"`
		Name     string      `json:"name"`
		Version  string      `json:"version"`
		Hashes   []hash      `json:"hashes,omitempty"`
		Licences []expressed `json:"licenses"`
		URL      string      `json:"purl,omitempty"`
	}
	supplier struct {
		Name string `json:"name"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	expressed struct {
		Expression string `json:"expression"`
	}
	dependency struct {
		Ref  string   `json:"ref"`
		Uses []string `json:"dependsOn"`
	}
)

// sbom returns the bill of materials of the programs in a folder: each with its hash, and with the
// modules that the linker has put into it. A program names these modules itself.
func sbom(all []component, version, folder string) ([]byte, error) {
	product := part{
		Type: "application", Ref: ours, Supplier: &supplier{owner}, Name: ours, Version: version, Licences: []expressed{{licence}},
	}
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{Component: product}}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH says when the sources were changed last, in seconds since 1970: %w", err)
	}
	b.Metadata.Timestamp = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	programs, libraries := dependency{Ref: ours}, map[string]part{}
	for _, e := range entries {
		program, uses, err := readProgram(all, filepath.Join(folder, e.Name()), version)
		if err != nil {
			return nil, err
		}
		used := dependency{Ref: program.Ref}
		for _, library := range uses {
			libraries[library.Ref] = library
			used.Uses = append(used.Uses, library.Ref)
		}
		programs.Uses = append(programs.Uses, program.Ref)
		b.Components = append(b.Components, program)
		b.Dependencies = append(b.Dependencies, used)
	}
	b.Dependencies = append(b.Dependencies, programs)
	for _, library := range libraries {
		b.Components = append(b.Components, library)
		b.Dependencies = append(b.Dependencies, dependency{Ref: library.Ref, Uses: []string{}})
	}
	slices.SortFunc(b.Components, func(x, y part) int { return strings.Compare(x.Ref, y.Ref) })
	slices.SortFunc(b.Dependencies, func(x, y dependency) int { return strings.Compare(x.Ref, y.Ref) })
	return b.encode()
}

// encode gives the bill a serial number, which must be another one for other contents: it is made
// of their hash, so that it is the same for the same contents.
func (b *bill) encode() ([]byte, error) {
	body, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(body)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8 of RFC 9562: made as the maker likes
	b.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	body, err = json.MarshalIndent(b, "", "  ")
	return append(body, '\n'), err
}

// readProgram describes a program and the modules in it.
func readProgram(all []component, path, version string) (program part, uses []part, err error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return part{}, nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return part{}, nil, err
	}
	name := filepath.Base(path)
	program = part{
		Type: "application", Ref: ours + "/" + name, Name: name, Version: version, Licences: []expressed{{licence}},
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(content))}},
	}
	modules := map[string]string{standard: strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		if !isOurs(m.Path) {
			modules[m.Path] = m.Version
		}
	}
	for _, c := range all {
		v, linked := modules[c.path]
		if !linked {
			continue
		}
		delete(modules, c.path)
		url := "pkg:golang/" + c.path + "@" + v
		uses = append(uses, part{
			Type: "library", Ref: url, Name: c.path, Version: v, URL: url, Licences: []expressed{{expression(c.licences())}},
		})
	}
	if len(modules) > 0 {
		return part{}, nil, fmt.Errorf("%s contains modules that \"go list\" does not name: %v", path, modules)
	}
	return program, uses, nil
}

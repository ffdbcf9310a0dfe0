package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	mit = "Copyright (c) 2020  Ann Example\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\nof this software"
	bsd = "  Copyright 2009 The Go Authors.\n\nRedistributions in binary form must reproduce the above\ncopyright notice, this list"
)

func read(t *testing.T, file, body string) text {
	t.Helper()
	got, err := newText("example.org/m", file, body)
	require.NoError(t, err)
	return got
}

func TestLicencesAreToldApart(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	require.NoError(t, err)
	for body, want := range map[string]string{
		mit: "MIT",
		bsd: "BSD-2-Clause",
		bsd + "\nNeither the names of the authors may be\nused to endorse or promote products": "BSD-3-Clause",
		string(apache): "Apache-2.0",
		"SQLite Is Public Domain\n\nAll of the code": "blessing",
	} {
		require.Equal(t, []string{want}, read(t, "LICENSE", body).licences)
	}
	_, err = newText("example.org/m", "LICENSE", "GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007")
	require.ErrorContains(t, err, "example.org/m: LICENSE: no licence that we know")
	require.Empty(t, read(t, "NOTICE", "This product includes software developed by Ann.").licences)
}

func TestWhoClaimsTheCopyright(t *testing.T) {
	c := component{path: "example.org/m", texts: []text{
		read(t, "LICENSE", mit), read(t, "more/LICENSE", bsd), read(t, "NOTICE", "Copyright [yyyy] [name]\ncopyright notice that is 2020\n"),
	}}
	require.Equal(t, []string{"2020  Ann Example", "2009 The Go Authors."}, c.claims())
	require.Equal(t, []string{"The authors of example.org/m"}, component{path: "example.org/m"}.claims())
}

// Code that a module has taken from elsewhere has its licence beside it, somewhere above a package.
func TestLicencesAboveAPackageAreRead(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "internal", "taken")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	for name, body := range map[string]string{
		"LICENSE": mit, "NOTICE.txt": "By Ann.", "licenses.go": "package m", "internal/taken/COPYING": bsd, "README": "no",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	got := map[string]text{}
	require.NoError(t, readTexts("example.org/m", dir, deep, got))
	require.Len(t, got, 3)
	require.Equal(t, []string{"BSD-2-Clause"}, got["internal/taken/COPYING"].licences)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE.other"), []byte("All rights reserved."), 0o600))
	require.ErrorContains(t, readTexts("example.org/m", dir, deep, got), "LICENSE.other")
}

func example(t *testing.T) []component {
	t.Helper()
	return []component{
		{path: "example.org/a", version: "v1.0.0", texts: []text{read(t, "LICENSE", mit)}},
		{path: "example.org/b", version: "v2.0.0", texts: []text{read(t, "LICENSE", strings.ReplaceAll(mit, "\n", " \n")), read(t, "x/LICENSE", bsd)}},
		{path: standard, texts: []text{read(t, "LICENSE", bsd+"\n\n\tused to endorse or promote products")}},
	}
}

func TestNoticeHasEachTextOnce(t *testing.T) {
	got := string(notice(example(t)))
	require.Contains(t, got, "  example.org/b v2.0.0: BSD-2-Clause AND MIT\n  the standard library of Go: BSD-3-Clause\n")
	require.Equal(t, 1, strings.Count(got, "Permission is hereby granted"))
	require.Contains(t, got, "\nexample.org/a: LICENSE\nexample.org/b: LICENSE\n-----")
}

// TestCopyrightIsMachineReadable reads the file as Debian's tools do: paragraphs of fields, whose
// further lines begin with a blank.
func TestCopyrightIsMachineReadable(t *testing.T) {
	var files []string
	for paragraph := range strings.SplitSeq(string(copyright(example(t))), "\n\n") {
		fields := map[string]string{}
		name := ""
		for line := range strings.Lines(paragraph) {
			if !strings.HasPrefix(line, " ") {
				var found bool
				name, line, found = strings.Cut(line, ":")
				require.True(t, found, "no field: %q", name)
			}
			require.NotEmpty(t, strings.TrimSpace(line), "%s in %q", name, paragraph)
			fields[name] += line
		}
		if fields["Files"] == "" {
			continue
		}
		require.NotEmpty(t, fields["Copyright"])
		require.NotEmpty(t, fields["License"])
		files = append(files, strings.TrimSpace(fields["Files"]))
	}
	require.Equal(t, []string{"*", "example.org/a/*", "example.org/b/*", "std/*"}, files)
}

// TestBillOfMaterials describes a program that is built here, so that it names its modules itself.
func TestBillOfMaterials(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795454216")
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "legal"), ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	first, err := sbom(example(t), "1.2.3", dir)
	require.NoError(t, err)
	second, err := sbom(example(t), "1.2.3", dir)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
	other, err := sbom(example(t), "1.2.4", dir)
	require.NoError(t, err)

	var got, changed bill
	require.NoError(t, json.Unmarshal(first, &got))
	require.NoError(t, json.Unmarshal(other, &changed))
	require.NotEqual(t, got.Serial, changed.Serial)
	require.Equal(t, "2026-11-23T17:16:56Z", got.Metadata.Timestamp)
	require.Len(t, got.Components, 2)
	require.Equal(t, "legal", got.Components[0].Name)
	require.Len(t, got.Components[0].Hashes[0].Content, 64)
	std := got.Components[1]
	require.Equal(t, "std", std.Name)
	require.Equal(t, []expressed{{"BSD-3-Clause"}}, std.Licences)
	require.Contains(t, got.Dependencies, dependency{Ref: "gotycoon/legal", Uses: []string{std.Ref}})

	_, err = sbom(example(t)[:2], "1.2.3", dir)
	require.ErrorContains(t, err, `modules that "go list" does not name: map[std:`)
}

// Command legal writes what a package must say about the software in it.
//
//	go run ./packaging/legal notice                            NOTICE, and the licences in nfpm.yaml
//	go run ./packaging/legal check                             fails when notice would change them
//	go run ./packaging/legal stage -version 1.2.3 -arch amd64 DIR
//
// All of it comes from the modules that the go command links into the programs, and from the
// licence files in these modules. stage writes DIR/copyright, which Debian's packages have, and
// DIR/sbom.cdx.json, the bill of materials of the programs in DIR/bin. With the same sources and
// SOURCE_DATE_EPOCH the files are the same.
//
// No library does it: the licences in the programs are a handful, which a sentence of each tells
// apart, and another one must make the command fail, since somebody has to read it; and the bill of
// materials needs a dozen fields of its format.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

const (
	owner   = "The gotycoon authors"
	year    = "2026"
	licence = "Apache-2.0"

	noticeFile  = "NOTICE"
	packageFile = "packaging/nfpm.yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "legal: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("which one? notice, check or stage")
	}
	switch args[0] {
	case "notice":
		return eachFile(func(path string, _, want []byte) error { return os.WriteFile(path, want, 0o644) })
	case "check":
		return eachFile(func(path string, got, want []byte) error {
			if !bytes.Equal(got, want) {
				return fmt.Errorf("%s does not tell of the modules that are in the programs: run \"make notice\", and read what it changes", path)
			}
			return nil
		})
	case "stage":
		return stage(args[1:])
	}
	return fmt.Errorf("%q: it is notice, check or stage", args[0])
}

// eachFile calls do with every file of the repository that tells of the modules: what the file
// says, and what it should say.
func eachFile(do func(path string, got, want []byte) error) error {
	all, err := linked("amd64", "arm64")
	if err != nil {
		return err
	}
	got, err := os.ReadFile(noticeFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := do(noticeFile, got, notice(all)); err != nil {
		return err
	}
	got, err = os.ReadFile(packageFile)
	if err != nil {
		return err
	}
	line := regexp.MustCompile(`(?m)^license: .*$`)
	if !line.Match(got) {
		return fmt.Errorf("%s has no line \"license: ...\"", packageFile)
	}
	return do(packageFile, got, line.ReplaceAll(got, []byte("license: "+expression(append(licences(all), licence)))))
}

// stage adds to the folder from which packages are made.
func stage(args []string) error {
	flags := flag.NewFlagSet("stage", flag.ContinueOnError)
	version := flags.String("version", "", "version of the package")
	arch := flags.String("arch", "", "architecture, as Go calls it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *version == "" || *arch == "" {
		return errors.New("stage: it is stage -version VERSION -arch ARCHITECTURE DIRECTORY")
	}
	dir := flags.Arg(0)
	all, err := linked(*arch)
	if err != nil {
		return err
	}
	bill, err := sbom(all, *version, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "copyright"), copyright(all), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "sbom.cdx.json"), bill, 0o644)
}

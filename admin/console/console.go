// Package console is the web page for those who run a server: plain HTML, style sheets and
// JavaScript modules, embedded in the program. Its data come from package api. It loads nothing
// from other hosts, and its content security policy forbids browsers to.
package console

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"gotycoon/admin"
)

//go:embed static
var static embed.FS

// policy is the content security policy: scripts, styles and images from this server only, nothing
// inline, no frames.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Path is the path of the console.
const Path = "/console/"

// Mount adds the console to a listener, and redirects the root to it.
func Mount(s *admin.Server) {
	s.Handle("GET /{$}", admin.Open, http.RedirectHandler(Path, http.StatusFound))
	s.Handle("GET "+Path, admin.Read, Handler())
}

// file is one of the console's files.
type file struct {
	body []byte
	kind string
	tag  string
}

// Handler returns a handler for the files under Path.
func Handler() http.Handler {
	files := map[string]file{}
	sub, _ := fs.Sub(static, "static") // embedded, so it exists
	_ = fs.WalkDir(sub, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(sub, name)
		sum := sha256.Sum256(body)
		files[name] = file{body, kindOf(name), `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		return err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, Path)
		if name == "" {
			name = "index.html"
		}
		f, found := files[name]
		if !found {
			http.NotFound(w, r)
			return
		}
		f.serve(w, r)
	})
}

// kindOf returns the media type of a file. It does not use the machine's table for the types that
// matter.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // browsers ask each time whether the file has changed
	h.Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(f.body) // the client may be gone
}

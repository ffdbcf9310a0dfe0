// Package console is the page for people who run a server: plain HTML, style and JavaScript modules, in the program itself. What it shows
// comes from package api. It asks nobody but the server that it came from, and its policy forbids it to.
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

// policy allows what the console needs and nothing else: no code and no style in the page itself, no other hosts, no frames.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Path is where the console is.
const Path = "/console/"

// Mount adds the console to a listener, whose root leads there.
func Mount(s *admin.Server) {
	s.Handle("GET /{$}", admin.Open, http.RedirectHandler(Path, http.StatusFound))
	s.Handle("GET "+Path, admin.Read, Handler())
}

// file is one that browsers are given.
type file struct {
	body []byte
	kind string
	tag  string
}

// Handler returns what serves the files under Path.
func Handler() http.Handler {
	files := map[string]file{}
	sub, _ := fs.Sub(static, "static") // it is there
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

// kindOf is the media type of a file, whatever the machine thinks of its name.
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
	h.Set("Cache-Control", "no-cache") // ask whether it has changed
	h.Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(f.body) // the client may be gone
}

// Package api is what the console asks the server, in JSON, on the admin listener under /api/. Reading is for those who may read the
// whole server, and every change, a backup among them, for admins.
//
// A change is refused when it comes from another site's page: it needs the header X-Gotycoon-Console, which such a page cannot send, and
// must not be for a page of another site (package browser). Requests from this machine are refused when they name another host than this machine: that is
// how a page makes a browser talk to a server behind its back. It is also refused where Options.Fixed says so.
//
// An API answers from New on, and knows what it looks at from Open to Close.
package api

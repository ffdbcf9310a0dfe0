// Package api answers the console with JSON, on the admin listener under /api/. Reading needs the
// right to read the whole server. Changes, and backups, need admin access.
//
// A web page of another site may make a user's browser send requests here. So
//
//   - a change needs the header X-Gotycoon-Console, which a page of another site cannot send, and
//     package browser must not recognise such a page;
//   - a request from this machine must name this machine as its host. A page whose name is resolved
//     to our address (DNS rebinding) fails that test.
//
// Options.Fixed can forbid all changes.
//
// An API answers from New on. It has something to show between Open and Close.
package api

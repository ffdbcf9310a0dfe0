// Package show is what the command line tools have in common of what people see and give: columns in plain text and hexadecimal,
// input that may be compressed, and progress.
package show

// Package tutorial is tests only: it types what README.md, the pages of docs and the original's
// published tutorial tell a reader to type. The output must be the output that they show.
//
// Each document is read from top to bottom, in one temporary directory:
//
//   - A fence "```console" holds commands: lines that begin with "$ ", continued by a "\" at their
//     end. The lines below a command are its output, standard error included.
//   - A fence with a file name behind the language ("```go example.go") is written to that file.
//   - Other fences are not run.
//   - A command that ends in "&" is started and ended by the test. The test waits until a started
//     server listens, and until a stopped server has ended before it starts another server on the
//     same port.
//   - Ports 1978 to 1983, and the ports of memcached, counters and locks, stand for free ports.
//   - In an output "..." stands for any text, a line "..." for any number of lines. Times of log
//     lines, process IDs, ports of clients, and seconds and time stamps since 1970 (10 or 19
//     digits, from 2008 to 2033) are compared by form.
//   - Commands that only read are repeated until they print what is shown, for a minute: so
//     expiration and restarts need no pauses. A command that sends a signal (-ssname) is repeated
//     until the command that waits for the signal has ended.
package tutorial

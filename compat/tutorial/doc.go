// Package tutorial is tests only: whoever types what README.md and the pages of docs show gets what they show, and whoever types what the
// original's published tutorial shows gets what that shows.
//
// How each of them is read, from top to bottom, in one temporary directory:
//
//   - A fence "```console" holds commands: lines that begin with "$ ", continued by a "\" at their end. The lines
//     below a command are its output, standard error included.
//   - A fence with a file name behind the language ("```go example.go") is written to that file.
//   - Other fences are not run.
//   - A command that ends in "&" is started and ended by the test. The next command follows when a server listens,
//     and a server on the port of one that was told to stop is started when that one has ended.
//   - Ports 1978 to 1983, and those of memcached, counters and locks, stand for free ones.
//   - In an output "..." is any text, and a line of it any number of lines. Times of log lines, process IDs, ports of
//     clients, and seconds and time stamps since 1970 (10 or 19 digits, from 2008 to 2033) are compared by form.
//   - Commands that only read are repeated until they print what is shown, for a minute: so expiration and
//     restarts need no pauses. A command that sends a signal (-ssname) is repeated until who waits for it has ended.
package tutorial

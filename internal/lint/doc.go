// Package lint has only tests: they parse the source of the module and check the rules that a
// compiler does not know. A rule and its reason are in the comment of its test.
package lint

package server

import (
	"slices"
	"strings"
)

// SecretOption reports whether the value of an option must not be shown.
func SecretOption(name string) bool {
	words := strings.Split(name, "-")
	return !slices.Contains(words, "file") &&
		slices.ContainsFunc(words, func(w string) bool { return w == "password" || w == "secret" || w == "token" })
}

// commandLine returns arguments of a process as they may be shown, without the values of secret
// options and the passwords of URLs: -pldb URL, -pldb=URL, and a URL in whatever else there may be.
func commandLine(args []string) []string {
	const hidden = "…"
	shown := slices.Clone(args)
	secret := false // the argument before is a secret option
	for i, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		option, is := strings.CutPrefix(name, "-")
		is = is && SecretOption(strings.TrimPrefix(option, "-"))
		switch {
		case secret:
			shown[i] = hidden
		case is && assigned:
			shown[i] = name + "=" + hidden
		case !IsEngineURL(arg):
		case assigned && !IsEngineURL(name): // else the = is one of the URL
			shown[i] = name + "=" + RedactedURL(value)
		default:
			shown[i] = RedactedURL(arg)
		}
		secret = is && !assigned && !secret
	}
	return shown
}

package httpapi

import (
	"fmt"
	"strings"

	"gotycoon/client/wire/tsv"
)

// checkMembers returns an error if a call in JSON has a parameter that the procedure does not know,
// or lacks one that it needs. In TSV parameters that nobody knows count for nothing, as in the
// original, and the error about a missing one has the original's words. People type JSON, so they
// are told which name is wrong.
func (p *procedure) checkMembers(in *tsv.Rows) error {
	if p == nil {
		return nil
	}
	_, takesRecords := records(p.in)
	for r := range in.All() {
		switch {
		case len(r.Name) > 0 && r.Name[0] == '_':
			if !takesRecords {
				return fmt.Errorf("%w: %s takes no records and no keys, but %s", errInvalidParameters, p.name, p.members())
			}
		case !p.knows(r.Name):
			return fmt.Errorf("%w: %s has no parameter %q: it takes %s", errInvalidParameters, p.name, r.Name, p.members())
		}
	}
	for _, name := range required(p.in) {
		if !in.Has(name) {
			return fmt.Errorf("%w: %s needs %q: it takes %s", errInvalidParameters, p.name, name, p.members())
		}
	}
	return nil
}

// knows reports whether the procedure has a parameter, or takes parameters of any name.
func (p *procedure) knows(name []byte) bool {
	if _, common := rowOf(commonRows, name); common {
		return true
	}
	for _, r := range p.in {
		if r.general() || r.name == string(name) {
			return true
		}
	}
	return false
}

// members lists what a call in JSON may have, for error texts.
func (p *procedure) members() string {
	var own, common []string
	for _, r := range p.in {
		switch {
		case r.name[0] != '_':
			own = append(own, r.name)
		case r.kind.of() == asKeys:
			own = append(own, "keys")
		default:
			own = append(own, "records")
		}
	}
	for _, r := range commonRows {
		common = append(common, r.name)
	}
	text := "as every procedure " + strings.Join(common, ", ")
	if len(own) == 0 {
		return text
	}
	return strings.Join(own, ", ") + ", and " + text
}

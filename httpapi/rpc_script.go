package httpapi

import (
	"iter"

	"gotycoon/db"
)

// Scripts calls the procedures of the server's script. Call returns 0 for success, and then has
// given the output to out; 1 if there is no such procedure; and else what the procedure has
// returned, or the number of its failure. Its updates are added to owed. An error of heed ends the
// call.
type Scripts interface {
	Call(heed db.Heed, owed *db.Pending, name string, in iter.Seq2[[]byte, []byte],
		out func(key, value []byte)) (status int)
}

// scriptError is the outcome of a procedure that is no success.
type scriptError struct {
	status int // of the response
	text   string
}

// Error returns the text of the original.
func (e *scriptError) Error() string { return e.text }

// scriptErrors are the outcomes by what Call returns, from 1 on. Larger and negative numbers mean
// the last one.
var scriptErrors = [...]*scriptError{
	{statusNotImplemented, "no such scripting procedure"},
	{statusBadRequest, "the scripting procedure failed"},
	{statusLogical, "the scripting procedure failed"},
	{statusUnavailable, "the scripting procedure failed"},
	{statusInternal, "the scripting procedure failed"},
}

// rpcPlayScript calls a procedure of the script. Its input is the rows whose names begin with an
// underscore, without the underscore, and the names of its output get one in front.
func rpcPlayScript(s *Session) error {
	scripts := s.h.opts.Scripts
	if scripts == nil {
		return errNoScript
	}
	name, _ := s.in.Get("name")
	if !isAlphanumeric(name) {
		return errInvalidParameters
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	s.h.opts.Counts.Script.Add(1)
	status := scripts.Call(s.heedRights, &s.c.Owed, string(name), s.in.arguments, func(key, value []byte) {
		s.out.rows.Add(s.out.internBytes("_", key), s.out.internBytes("", value))
	})
	if !s.gate.Current() { // before the output is told
		if err := s.gate.Renew(); err != nil {
			return err
		}
	}
	if status == 0 {
		return nil
	}
	if err := s.heed(); err != nil {
		return err
	}
	if status < 0 || status > len(scriptErrors) {
		status = len(scriptErrors)
	}
	return scriptErrors[status-1]
}

// heedRights is the Heed of a script. A script has all rights of its client, and ends when they are
// gone.
func (s *Session) heedRights() error {
	if err := s.heed(); err != nil {
		return err
	}
	if !s.gate.Current() {
		return s.gate.Renew()
	}
	return nil
}

// arguments yields the rows for the script's procedure.
func (in *input) arguments(yield func(key, value []byte) bool) {
	for row := range in.All() {
		if len(row.Name) > 0 && row.Name[0] == '_' && !yield(row.Name[1:], row.Value) {
			return
		}
	}
}

// isAlphanumeric reports whether there is a name, of letters and digits of ASCII only.
func isAlphanumeric(name []byte) bool {
	for _, c := range name {
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z') {
			return false
		}
	}
	return len(name) > 0
}

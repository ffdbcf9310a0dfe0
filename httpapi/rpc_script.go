package httpapi

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
func rpcPlayScript(c *call) error {
	scripts := c.opts.Scripts
	if scripts == nil {
		return errNoScript
	}
	name, _ := c.in.Get("name")
	if !isAlphanumeric(name) {
		return errInvalidParameters
	}
	if err := c.beginLong(); err != nil {
		return err
	}
	c.opts.Counts.Script.Add(1)
	status := scripts.Call(c.heedRights, &c.conn.Owed, string(name), c.in.arguments, func(key, value []byte) {
		c.out.rows.Add(c.out.internBytes("_", key), c.out.internBytes("", value))
	})
	if err := c.renewRights(); err != nil { // before the output is told
		return err
	}
	if status == 0 {
		return nil
	}
	if err := c.heed(); err != nil {
		return err
	}
	if status < 0 || status > len(scriptErrors) {
		status = len(scriptErrors)
	}
	return scriptErrors[status-1]
}

// heedRights is the Heed of a script. A script has all rights of its client, and ends when they are
// gone.
func (c *call) heedRights() error {
	if err := c.heed(); err != nil {
		return err
	}
	return c.renewRights()
}

// renewRights returns an error if the client has lost its rights since they were looked at.
func (c *call) renewRights() error {
	if r := c.conn.Owed.Rights; r != nil && !r.Current() {
		return r.Renew()
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

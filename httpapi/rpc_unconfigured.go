package httpapi

// rpcPlayScript answers like a server that was started without a script.
func rpcPlayScript(*Session) error { return errNoScript }

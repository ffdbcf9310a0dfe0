package httpapi

// rpcPlayScript answers like a server that was started without a script.
func rpcPlayScript(*Session) error { return errNoScript }

// rpcTuneReplication answers like a server that was started without a replication time stamp file.
func rpcTuneReplication(*Session) error { return errNoRTS }

package script

import lua "github.com/yuin/gopher-lua"

// Version is the version of the original that scripts see.
const Version = "0.9.56b"

// openServer makes the global table of the server.
func (s *state) openServer() {
	kt := s.l.NewTable()
	for _, c := range []struct {
		name  string
		value int
	}{{"RVSUCCESS", Success}, {"RVENOIMPL", NoImpl}, {"RVEINVALID", Invalid}, {"RVELOGIC", Logic}, {"RVEINTERNAL", Internal}} {
		kt.RawSetString(c.name, lua.LNumber(c.value))
	}
	kt.RawSetString("VERSION", lua.LString(Version))
	kt.RawSetString("thid", lua.LNumber(s.thid))
	kt.RawSetString("__serv__", s.userdata(s.pool))
	s.openError(kt)
	s.openVisitor(kt)
	s.openCursor(kt)
	s.openDB(kt)
	s.openUtilities(kt)
	s.openDatabases(kt)
	s.l.SetGlobal("__kyototycoon__", kt)
}

// openDatabases gives the script the server's databases, by number and by name.
func (s *state) openDatabases(kt *lua.LTable) {
	dbs := s.l.NewTable()
	for i := range s.pool.opts.Catalog.Len() {
		d := s.pool.opts.Catalog.DB(i)
		h := &handle{s: s, db: d, served: true, message: "no error"}
		object := s.newDB(h)
		dbs.RawSetInt(i+1, object)
		if d.Name() != "" {
			dbs.RawSetString(d.Name(), object)
		}
		if i == 0 {
			kt.RawSetString("db", object)
		}
	}
	kt.RawSetString("dbs", dbs)
}

// openUtilities makes the functions of the table of the server.
func (s *state) openUtilities(kt *lua.LTable) {
	kt.RawSetString("log", s.function("serv_log", 2, 2, servLog))
	for _, m := range []method{
		{"atoi", 1, 1, ktAtoi}, {"atoix", 1, 1, ktAtoix}, {"atof", 1, 1, ktAtof},
		{"hash_murmur", 1, 1, ktHashMurmur}, {"hash_fnv", 1, 1, ktHashFNV}, {"levdist", 2, anyNumber, ktLevdist},
		{"time", 0, 0, ktTime}, {"sleep", 0, 1, ktSleep}, {"pack", 1, anyNumber, ktPack}, {"unpack", 2, anyNumber, ktUnpack},
		{"split", 1, anyNumber, ktSplit}, {"codec", 2, anyNumber, ktCodec}, {"bit", 2, anyNumber, ktBit},
		{"strstr", 2, anyNumber, ktStrstr}, {"strfwm", 2, anyNumber, ktStrfwm}, {"strbwm", 2, anyNumber, ktStrbwm},
		{"regex", 2, anyNumber, ktRegex}, {"arraydump", 1, anyNumber, ktArrayDump}, {"arrayload", 1, anyNumber, ktArrayLoad},
		{"mapdump", 1, anyNumber, ktMapDump}, {"mapload", 1, anyNumber, ktMapLoad},
	} {
		kt.RawSetString(m.name, s.function("kt_"+m.name, m.least, m.most, m.body))
	}
}

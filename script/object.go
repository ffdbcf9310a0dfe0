package script

import (
	lua "github.com/yuin/gopher-lua"

	"gotycoon/db/dberr"
)

func (s *state) userdata(v any) *lua.LUserData {
	u := s.l.NewUserData()
	u.Value = v
	return u
}

// class makes the table of a class with the function new, and the metatable of its objects as
// meta_.
func (s *state) class(kt *lua.LTable, name string, create *lua.LFunction, meta map[string]*lua.LFunction) (class, mt *lua.LTable) {
	class, mt = s.l.NewTable(), s.l.NewTable()
	for event, f := range meta {
		mt.RawSetString(event, f)
	}
	class.RawSetString("new", create)
	class.RawSetString("meta_", mt)
	kt.RawSetString(name, class)
	return class, mt
}

// object makes an object: a table with members.
func (s *state) object(members []member, mt *lua.LTable) *lua.LTable {
	t := s.l.CreateTable(0, len(members)+4)
	for _, m := range members {
		t.RawSetString(m.name, m.value)
	}
	if mt != nil {
		t.Metatable = mt
	}
	return t
}

func numbers(t *lua.LTable, list []number64) {
	for _, c := range list {
		t.RawSetString(c.name, lua.LNumber(c.value))
	}
}

type number64 struct {
	name  string
	value int64
}

// method is a row of the table of a class. The numbers of arguments include the object.
type method struct {
	name        string
	least, most int
	body        func(c call) int
}

// openError makes the class of the result of db:error().
func (s *state) openError(kt *lua.LTable) {
	s.classes.errors, s.classes.errorMeta = s.class(kt, "Error", s.function("err_new", 1, 3, errNew),
		map[string]*lua.LFunction{"__tostring": s.function("err_tostring", 1, anyNumber, errString)})
	numbers(s.classes.errors, []number64{{"SUCCESS", int64(dberr.Success)}, {"NOIMPL", int64(dberr.NotImplemented)},
		{"INVALID", int64(dberr.InvalidOperation)}, {"NOREPOS", int64(dberr.NoRepository)}, {"NOPERM", int64(dberr.NoPermission)},
		{"BROKEN", int64(dberr.BrokenFile)}, {"DUPREC", int64(dberr.RecordDuplication)}, {"NOREC", int64(dberr.NoRecord)},
		{"LOGIC", int64(dberr.LogicInconsistency)}, {"SYSTEM", int64(dberr.SystemError)}, {"MISC", int64(dberr.Miscellaneous)}})
	s.classes.errorMembers = []member{
		{"set", s.function("err_set", 3, 3, errSet)},
		{"code", s.function("err_code", 1, 1, errCode)},
		{"name", s.function("err_name", 1, 1, errName)},
		{"message", s.function("err_message", 1, 1, errMessage)},
	}
}

// newError makes an error object.
func (s *state) newError(code dberr.Code, message string) *lua.LTable {
	t := s.object(s.classes.errorMembers, s.classes.errorMeta)
	t.RawSetString("code_", lua.LNumber(code))
	t.RawSetString("message_", lua.LString(message))
	return t
}

func errNew(c call) int {
	c.table(1)
	code, message := dberr.Success, "error"
	if c.l.GetTop() == 3 {
		code, message = dberr.Code(c.int(2, 0)), c.text(3)
	}
	c.l.Push(c.s.newError(code, message))
	return 1
}

func errSet(c call) int {
	t := c.table(1)
	t.RawSetString("code_", lua.LNumber(c.int(2, 0)))
	t.RawSetString("message_", lua.LString(c.text(3)))
	return 0
}

func errCode(c call) int {
	c.l.Push(c.table(1).RawGetString("code_"))
	return 1
}

func errMessage(c call) int {
	c.l.Push(c.table(1).RawGetString("message_"))
	return 1
}

func errName(c call) int {
	code, _ := number(c.table(1).RawGetString("code_"))
	return c.pushBytes([]byte(dberr.Code(code).String()))
}

func errString(c call) int {
	t := c.table(1)
	code, _ := number(t.RawGetString("code_"))
	message, _ := text(t.RawGetString("message_"))
	return c.pushBytes([]byte(dberr.Code(code).String() + ": " + message))
}

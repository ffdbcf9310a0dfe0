package pg

import (
	_ "embed"
	"strconv"
	"strings"
)

// Classes of advisory locks, which have two numbers of 32 bits: this and another one. They are
// locks of one PostgreSQL database, so two gotycoons need two of them.
const (
	classDatabase  = 0x676f7431 + iota // and the index of a database
	classStamping                      // shared by those between stamp and commit
	classMutex                         // of the sequence of stamps
	classFold                          // who folds deltas, rotates groups
	classCreate                        // who makes tables
	classListening                     // shared by those who listen for signals
)

//go:embed schema.sql
var schemaSQL string

//go:embed table.sql
var tableSQL string

// sql returns statements with the numbers of the classes, of a database and of an error filled in.
func sql(text string, db uint16) string {
	return strings.NewReplacer(
		"{database}", strconv.Itoa(classDatabase), "{stamping}", strconv.Itoa(classStamping), "{mutex}", strconv.Itoa(classMutex),
		"{fold}", strconv.Itoa(classFold), "{n}", strconv.Itoa(int(db)), "{disowned}", disowned,
	).Replace(text)
}

package record

// Verdict is what a visitor decides about the record that it was shown.
type Verdict struct {
	Op    VisitOp
	Value []byte // to store, with Store and Renew
	Room  []byte // a large Value as StoreInPlace takes it; nil: Value is copied
	XT    XT     // expiration argument, with Renew
}

// VisitOp is what is done with a visited
type VisitOp int

const (
	Keep    VisitOp = iota // nothing
	Discard                // remove it; nothing where there is none
	Store                  // store Value; an existing record keeps its expiration time
	Renew                  // store Value with the expiration time XT
)

// Visitor is shown a record: its value and absolute expiration time in seconds, or found = false
// where there is none. The slices are valid during the call. The visitor may take its time: nobody
// else can update the key meanwhile. It must not use the same database.
type Visitor func(key, value []byte, xt int64, found bool) Verdict

// When is the condition under which a record is stored.
type When int

const (
	Anyway    When = iota // whether there is one or not
	WhenNew               // there is no record of the key
	WhenThere             // there is one
)

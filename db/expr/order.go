package expr

// Order is how a database with an order compares its keys (parameter rcomp).
type Order int

// The orders.
const (
	Lexical     Order = iota // by bytes
	LexicalDesc              // by bytes, last first
	Decimal                  // by leading number, then by bytes
	DecimalDesc              // the same, last first
)

// String returns the name that status reports.
func (o Order) String() string {
	switch o {
	case LexicalDesc:
		return "lexicaldesc"
	case Decimal:
		return "decimal"
	case DecimalDesc:
		return "decimaldesc"
	}
	return "lexical"
}

// descends tells whether the order is against that of the store.
func (o Order) Descends() bool { return o == LexicalDesc || o == DecimalDesc }

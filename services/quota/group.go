package quota

import (
	"strconv"

	"gotycoon/db"
	"gotycoon/db/record"
)

// group is the records of one call, or of one round, which are committed together. The database
// copies what it stores, so the memory of a group serves later calls too.
type group struct {
	recs []db.Record // the first is a call's state, for the reason in last.go; without a key: none
	text []byte      // keys and values of recs
}

// begin empties the group.
func (g *group) begin() { g.recs, g.text = append(g.recs[:0], db.Record{}), g.text[:0] }

// all returns the records.
func (g *group) all() []db.Record {
	if g.recs[0].Key == nil {
		return g.recs[1:]
	}
	return g.recs
}

// record returns a record whose key and value end the text, and begin at these places.
func (g *group) record(key, value int, xt record.XT) db.Record {
	end := len(g.text)
	return db.Record{Key: g.text[key:value:value], Value: g.text[value:end:end], XT: xt}
}

// state puts the record of the state in front. If the call has other records, it tells them too.
func (g *group) state(q *quota, c *call, reply []byte) {
	key, value := g.appendState(q)
	if len(g.recs) > 1 {
		g.text = appendLast(g.text, c, reply)
	}
	g.recs[0] = g.record(key, value, record.Never)
}

// finalState adds the record of the state behind the others, see round.go.
func (g *group) finalState(q *quota) {
	key, value := g.appendState(q)
	g.recs = append(g.recs, g.record(key, value, record.Never))
}

// appendState appends key and value of the state's record to the text, and returns where they
// begin.
func (g *group) appendState(q *quota) (key, value int) {
	key = len(g.text)
	g.text = appendKey(g.text, q.name, "state")
	value = len(g.text)
	g.text = append(strconv.AppendInt(g.text, q.state.remaining, 10), ' ')
	g.text = append(strconv.AppendUint(g.text, q.state.journal, 10), " 0"...)
	if q.state.open {
		g.text[len(g.text)-1] = '1'
	}
	return key, value
}

// apply adds the journal of an apply.
func (g *group) apply(name string, number uint64, j journal) {
	key := len(g.text)
	g.text = appendJournalKey(g.text, name, number)
	value := len(g.text)
	g.text = j.append(g.text)
	g.recs = append(g.recs, g.record(key, value, record.Never))
}

// cancel adds the journal of a cancel.
func (g *group) cancel(name string, number, cancelled uint64) {
	key := len(g.text)
	g.text = appendJournalKey(g.text, name, number)
	value := len(g.text)
	g.text = appendCancel(g.text, cancelled)
	g.recs = append(g.recs, g.record(key, value, record.Never))
}

// reply adds the reply to a call with an id. It expires at xt.
func (g *group) reply(q *quota, c *call, reply []byte, xt record.XT) {
	key := len(g.text)
	g.text = append(g.text, q.idKey(c)...)
	value := len(g.text)
	g.text = append(append(c.append(g.text), '\n'), reply...)
	g.recs = append(g.recs, g.record(key, value, xt))
}

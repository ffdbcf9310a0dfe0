// Package crash is tests only: the real server is killed again and again while clients change its databases, and
// after each restart the databases must be what the clients were told.
//
// Every client works on keys of its own over one connection, so the server sees its updates in one order. After a
// crash the client's part of the database must be what it was after the first n of its updates, for some n that
// includes all that were acknowledged: nothing acknowledged is missing, nothing came in another order, no atomic bulk
// is there in part, and nothing else is there.
package crash

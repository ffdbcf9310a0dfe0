// Package crash is tests only: it kills the real server again and again while clients change its
// databases. After each restart the databases must have what the clients were told.
//
// Each client works on keys of its own over one connection, so the server receives its updates in
// one order. After a crash the client's part of the database must be the result of its first n
// updates, for an n that includes every acknowledged update. So nothing acknowledged is missing,
// nothing was applied in another order, no atomic bulk was applied in part, and no other update is
// there. With the updates 1 to 5 sent and 1 to 3 acknowledged, n may be 3, 4 or 5.
package crash

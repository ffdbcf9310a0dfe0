// Package replsql is ktreplsql: it reads the update log of a server as "ktremotemgr slave" prints it, and keeps a table in
// PostgreSQL or SQLite that has the same records.
//
// # Exactly once
//
// The time stamp of the last line that is in the table is a row of a table beside it, and changes in the same transaction as the
// records. Lines up to it are passed over. So it does not matter where one of the programs is killed, and whether the other side
// sends again what it has sent: every line changes the table once. Two ktreplsql with the same feed wait for each other at that
// row.
package replsql

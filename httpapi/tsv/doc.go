// Package tsv holds the tables that remote procedure calls take and give: names with values, written as
// tab-separated rows, the columns plain or encoded as Base64, quoted-printable or percent escapes.
//
// Server and client share it. It knows no procedure and no connection.
package tsv

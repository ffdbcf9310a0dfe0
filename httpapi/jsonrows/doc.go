// Package jsonrows reads and writes the tables of remote procedure calls as JSON. Package tsv holds
// the tables; a procedure never learns in which form its input came, nor in which form its output
// leaves.
//
// # Input
//
// The body is one object. A member is a row: its name is the name of the row, its value one of
//
//	"green"               the bytes of the text in UTF-8
//	12, -1.5, 1e3         the number as it is written; an exponent is written out: 1000. A number
//	                      that has more than 32 bytes then is refused: give it as a string
//	true, false           the words; of a parameter that counts "if present", false is absence
//	null                  no row
//	{"base64": "AP8="}    bytes that are no text
//
// Rows whose names begin with an underscore, which are the records of a bulk and the arguments of a
// script, have no members of their own. They are given together, in one of three forms:
//
//	"records": {"tea": "green", "coffee": "black"}
//	"records": [{"key": "tea", "value": "green"}, {"key": {"base64": "AP8="}, "value": "x"}]
//	"keys": ["tea", {"base64": "AP8="}]               records whose values do not count
//
// A member name that begins with an underscore is refused, so there is one way only. Of several
// records with one key the last one counts, as in a table. A member that is named twice is refused.
//
// # Output
//
// The reply is one object in one line: the rows without an underscore in the order of their names,
// then "records" as an array of {"key", "value"}, in the order of the keys' bytes. An array,
// because a member name can only be text, and because readers of objects do not keep their order;
// and always an array, so that a program does not break on the day when the first key is no text.
// The searches for keys answer with "keys" instead, in the order of the search. A value is a string
// where its bytes are UTF-8, and {"base64": …} where they are not. What the table of procedures
// calls a number is a number; time stamps are strings of digits, since they do not fit the numbers
// of JavaScript.
//
// # Bounds
//
// The form has four levels, so the decoder has no recursion, and a deeper body is refused where it
// goes deeper. Strings are decoded where they stand in the body, since no escape is shorter than
// what it stands for. Only exponents are copied, to 32 bytes at most. The table asks for the memory
// of its rows and of these copies as it does for rows of TSV.
package jsonrows

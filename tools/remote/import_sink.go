package remote

import (
	"context"

	"gotycoon/client"
)

// source is where import -from gets its records.
type source interface {
	read(ctx context.Context, to sink) error
}

// sink takes the records of a source.
type sink interface {
	put(ctx context.Context, ch change, size int) error
	// lookup returns what the key has, and whether it has something; earlier changes count.
	lookup(ctx context.Context, key string) (ch change, found bool, err error)
	// clear removes everything that the source has put. It fails if that cannot be told from what
	// the database had before.
	clear(ctx context.Context) error
	// never is the expiration time of a record for which the source has none.
	never() client.Expiry
	// note prints a line for people.
	note(format string, args ...any)
}

package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"golang.org/x/crypto/bcrypt"
)

// hashCost is the bcrypt cost of new hashes. A comparison takes about 60 ms on a machine of today;
// logins remembers right passwords.
const hashCost = 10

// maxPassword is the number of bytes of a password that bcrypt uses.
const maxPassword = 72

var (
	errEmpty = errors.New("the password is empty")
	errLong  = errors.New("a password has at most 72 bytes")
)

// HashPassword returns the hash of a password for an access file.
func HashPassword(password []byte) (string, error) {
	switch {
	case len(password) == 0:
		return "", errEmpty
	case len(password) > maxPassword:
		return "", errLong
	}
	hash, err := bcrypt.GenerateFromPassword(password, hashCost)
	return string(hash), err
}

// leastToken is the length of the shortest token in bytes. Tokens are compared quickly, so a short
// one could be guessed.
const leastToken = 16

var errShortToken = errors.New("a token has at least 16 characters, better 32 random ones: openssl rand -hex 32")

// HashToken returns the hash of a token for an access file.
func HashToken(token []byte) (string, error) {
	if len(token) < leastToken {
		return "", errShortToken
	}
	digest := sha256.Sum256(token)
	return hex.EncodeToString(digest[:]), nil
}

package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"golang.org/x/crypto/bcrypt"
)

// hashCost takes some 60 ms on a machine of today; what is right is remembered.
const hashCost = 10

// maxPassword is how many bytes of a password bcrypt looks at.
const maxPassword = 72

var (
	errEmpty = errors.New("the password is empty")
	errLong  = errors.New("a password has at most 72 bytes")
)

// HashPassword returns what stands for a password in an access file.
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

// leastToken is the shortest token in bytes: nothing slows down who guesses.
const leastToken = 16

var errShortToken = errors.New("a token has at least 16 characters, better 32 random ones: openssl rand -hex 32")

// HashToken returns what stands for a token in an access file.
func HashToken(token []byte) (string, error) {
	if len(token) < leastToken {
		return "", errShortToken
	}
	digest := sha256.Sum256(token)
	return hex.EncodeToString(digest[:]), nil
}

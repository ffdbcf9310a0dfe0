// Package words has what several packages say to people in the same words.
package words

import "fmt"

// Followers is a number of followers.
func Followers(n int) string {
	if n == 1 {
		return "1 follower"
	}
	return fmt.Sprintf("%d followers", n)
}

// FollowersHave is Followers with a verb, for what follows.
func FollowersHave(n int) string {
	if n == 1 {
		return "1 follower has"
	}
	return Followers(n) + " have"
}

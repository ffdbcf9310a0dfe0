// Package history is clients for tests that make everything go wrong: they speak all protocols, say
// what is known of each request, and porcupine finds out whether what they were told can have
// happened one after the other.
package history

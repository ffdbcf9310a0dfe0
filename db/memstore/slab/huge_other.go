//go:build !linux || race

package slab

func preferHuge([]byte) {}

func preferSmall([]byte) {}

//go:build linux && !race

package slab

import "golang.org/x/sys/unix"

// preferHuge asks for huge pages of 2 MiB. A kernel that has none to give goes on with small ones.
func preferHuge(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }

// preferSmall takes preferHuge back.
func preferSmall(mem []byte) { _ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE) }

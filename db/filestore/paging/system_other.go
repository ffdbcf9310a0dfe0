//go:build !linux

package paging

import (
	"errors"
	"os"
)

// supported: here the system finds out by itself which pages nobody needs.
const supported = false

func eachAbsent(file, span, []byte, func(span)) {}

func willNeed([]byte) {}

func pageOut([]byte) {}

func noReadAhead(*os.File) {}

func dropFromCache(*os.File, int64, int64) {}

func mapAgain(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

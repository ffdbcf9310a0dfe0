package main_test

import (
	"testing"

	"gotycoon/compat/ktproc"
)

func TestExitCodes(t *testing.T) { ktproc.ExitCodes(t, "ktutilmgr", "version") }

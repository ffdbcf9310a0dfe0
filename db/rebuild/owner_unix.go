package rebuild

import (
	"os"
	"syscall"
)

const filePerm = 0o644

// mode returns the access rights for a file that takes the place of path.
func mode(path string) os.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return filePerm
}

// keepOwner gives a file the owner and the rights of the one that it replaces, as far as this
// process may.
func keepOwner(old, fresh string) {
	info, err := os.Stat(old)
	if err != nil {
		return
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(fresh, int(st.Uid), int(st.Gid))
	}
	_ = os.Chmod(fresh, info.Mode().Perm())
}

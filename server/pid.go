package server

import (
	"os"
	"strconv"
)

// writePID writes the process ID for scripts that send signals. A server that cannot goes on: they would rather
// have it than the file.
func (p *process) writePID(pid int) {
	if p.cfg.PIDPath == "" {
		return
	}
	if err := os.WriteFile(p.cfg.PIDPath, []byte(strconv.Itoa(pid)+"\n"), 0o644); err != nil {
		p.log.error("writing the process ID: %v", err)
	}
}

func (p *process) removePID() {
	if p.cfg.PIDPath == "" {
		return
	}
	if err := os.Remove(p.cfg.PIDPath); err != nil && !os.IsNotExist(err) {
		p.log.error("removing the process ID: %v", err)
	}
}

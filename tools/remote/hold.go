package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes of lock, and of counter acquire, beside those of the command that they run. Scripts can tell them from common ones.
const (
	exitNotGranted = exitStatus(75) // not granted in time: the command was not run
	exitLost       = exitStatus(76) // what was held was lost while the command ran
)

// exits prints an error and returns the exit code that stands for it.
func (c *call) exits(code exitStatus, err error) error {
	fmt.Fprintf(c.stderr, "%s: %v\n", program, err)
	return code
}

const (
	holdCheck = time.Second      // a connection that holds something is looked at so often
	holdLimit = 30 * time.Second // it is lost when the server does not answer for so long
)

// holder holds something on a server while a command runs.
type holder struct {
	*call
	alive func(ctx context.Context) error // an error says that it is held no more; asked now and then
	lost  <-chan struct{}                 // closed when it is held no more; nil: nobody tells
	env   []string                        // for the command, beside the environment there is
}

// run runs a command and returns its exitStatus. When what is held is lost, the command is told to end: it must not go on
// with what others may have now. Its end is waited for in any case.
func (h *holder) run(ctx context.Context, args []string) error {
	if err := h.out.Flush(); err != nil {
		return err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = h.stdin, h.stdout, h.stderr
	cmd.Env = append(os.Environ(), h.env...)
	signals := make(chan os.Signal, 8) // more than come before they are looked at
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return err
	}
	running, stopped := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { // ends with the command
		ended <- cmd.Wait()
		stopped()
	}()
	lost := h.guard(running, cmd.Process, signals)
	err := <-ended
	if lost != nil {
		return &lostError{lost}
	}
	return exitError(err)
}

// lostError says that what was held was lost while the command ran.
type lostError struct{ error }

func (e *lostError) Error() string {
	return "what was held is lost, so the command was told to end: " + e.error.Error()
}

func (e *lostError) Unwrap() error { return e.error }

// guard looks after what is held until the command has ended, or is told to because that is lost: the error says why.
func (h *holder) guard(running context.Context, command *os.Process, signals <-chan os.Signal) error {
	check := time.NewTicker(holdCheck)
	defer check.Stop()
	for {
		select {
		case <-running.Done():
			_ = command.Signal(syscall.SIGTERM) // has ended, unless it is our context that has
			return nil
		case s := <-signals:
			if s != os.Interrupt { // which a terminal sends to the command, too
				_ = command.Signal(s) // may have ended
			}
			continue
		case <-h.lost:
		case <-check.C:
		}
		if err := h.check(running); err != nil && running.Err() == nil {
			_ = command.Signal(syscall.SIGTERM) // may have ended
			return err
		}
	}
}

func (h *holder) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, holdLimit)
	defer cancel()
	return h.alive(ctx)
}

// exitError is what the end of a command means for the tool.
func exitError(err error) error {
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return err
	}
	if failed.Exited() {
		return exitStatus(failed.ExitCode())
	}
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		const bySignal = 128 // as in shells
		return exitStatus(bySignal + int(status.Signal()))
	}
	return err
}

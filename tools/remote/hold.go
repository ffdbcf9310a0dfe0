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

// Exit codes of lock and of counter acquire, beside the exit code of the command that they run.
// They are unusual numbers, so that scripts can tell them from the command's.
const (
	exitNotGranted = exitStatus(75) // not granted in time; the command was not run
	exitLost       = exitStatus(76) // lost while the command ran
)

// exits prints an error and returns its exit code.
func (c *call) exits(code exitStatus, err error) error {
	fmt.Fprintf(c.stderr, "%s: %v\n", program, err)
	return code
}

const (
	holdCheck = time.Second      // time between two checks of the connection
	holdLimit = 30 * time.Second // a server that does not answer for so long is lost
)

// holder holds a lock or resources on a server while a command runs.
type holder struct {
	*call
	alive func(ctx context.Context) error // called now and then; an error means: lost
	lost  <-chan struct{}                 // closed when it is lost; nil: only alive tells
	env   []string                        // added to the environment of the command
}

// run runs a command and returns its exit code as an exitStatus. When the lock or the resources are
// lost, the command is told to end, because another client may have them now. run waits for the
// command's end in any case.
func (h *holder) run(ctx context.Context, args []string) error {
	if err := h.out.Flush(); err != nil {
		return err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = h.stdin, h.stdout, h.stderr
	cmd.Env = append(os.Environ(), h.env...)
	signals := make(chan os.Signal, 8) // more than arrive before guard reads them
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

// lostError says that the lock or the resources were lost while the command ran.
type lostError struct{ error }

func (e *lostError) Error() string {
	return "what was held is lost, so the command was told to end: " + e.error.Error()
}

func (e *lostError) Unwrap() error { return e.error }

// guard watches the lock or the resources until the command ends. If they are lost first, guard
// tells the command to end and returns the reason.
func (h *holder) guard(running context.Context, command *os.Process, signals <-chan os.Signal) error {
	check := time.NewTicker(holdCheck)
	defer check.Stop()
	for {
		select {
		case <-running.Done():
			_ = command.Signal(syscall.SIGTERM) // has ended already, unless ctx has ended first
			return nil
		case s := <-signals:
			if s != os.Interrupt { // a terminal sends Interrupt to the command too
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

// exitError converts the end of a command to the end of this program.
func exitError(err error) error {
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return err
	}
	if failed.Exited() {
		return exitStatus(failed.ExitCode())
	}
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		const bySignal = 128 // the convention of shells
		return exitStatus(bySignal + int(status.Signal()))
	}
	return err
}

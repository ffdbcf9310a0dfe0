package mem

import (
	"context"

	"gotycoon/db/engine"
)

// ear is a server that listens for signals.
type ear struct {
	messages chan string
	cut      chan struct{}
}

type signals struct{ *Server }

// Signals returns the signals as the server sees them.
func (v *Server) Signals() engine.Signals { return signals{v} }

// Send sends a message. Who has a thousand of them in front of it misses it.
func (v signals) Send(ctx context.Context, message string) error {
	if err := engine.CheckSignal(message); err != nil {
		return err
	}
	_, err := ask(ctx, v.Server, Call{Name: Signal}, func() (struct{}, error) {
		v.store.mu.Lock()
		defer v.store.mu.Unlock()
		for e := range v.store.ears {
			select {
			case e.messages <- message:
			default:
			}
		}
		return struct{}{}, nil
	})
	return err
}

// Listen hears the messages of all servers.
func (v signals) Listen(ctx context.Context, begun func(), heard func(message string)) error {
	e := &ear{make(chan string, 1000), make(chan struct{})}
	_, err := ask(ctx, v.Server, Call{Name: Listen}, func() (struct{}, error) {
		v.store.listen(e, true)
		return struct{}{}, nil
	})
	if err != nil {
		return err
	}
	defer v.store.listen(e, false)
	begun()
	for {
		select {
		case message := <-e.messages:
			heard(message)
		case <-ctx.Done():
			return ctx.Err()
		case <-e.cut:
			return &engine.Error{Kind: engine.Undone, Away: true, Err: errCut}
		case <-v.ctx.Done():
			return &engine.Error{Kind: engine.Undone, Err: v.ctx.Err()}
		}
	}
}

func (s *Store) listen(e *ear, begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begins {
		s.ears[e] = true
	} else {
		delete(s.ears, e)
	}
}

// CutSignals cuts the connections of all who listen.
func (s *Store) CutSignals() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.ears {
		close(e.cut)
	}
	clear(s.ears)
}

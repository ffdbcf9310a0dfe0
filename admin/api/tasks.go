package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"gotycoon/internal/rescue"
)

// Task is something that takes longer than a request.
type Task struct {
	Running bool       `json:"running"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Error   string     `json:"error,omitempty"`
}

// tasks are the latest ones by their names. The zero value is ready for use.
type tasks struct {
	mu sync.Mutex // protects of
	of map[string]*Task
}

// get returns a task, nil when there has been none with this name.
func (t *tasks) get(name string) *Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.of[name]; found != nil {
		return new(*found)
	}
	return nil
}

// begin notes the start of a task, or returns false when one with this name is under way.
func (t *tasks) begin(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.of[name]; found != nil && found.Running {
		return false
	}
	if t.of == nil {
		t.of = map[string]*Task{}
	}
	t.of[name] = &Task{Running: true, Started: time.Now()}
	return true
}

func (t *tasks) end(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	task := t.of[name]
	task.Running, task.Ended = false, new(time.Now())
	if err != nil {
		task.Error = err.Error()
	}
}

// start runs a task that outlives the request, whose caller has entered. It ends at Close, for which its context ends.
func (a *API) start(name string, run func(context.Context) error) (any, error) {
	if !a.tasks.begin(name) {
		return nil, refused(http.StatusConflict, "this is under way already")
	}
	a.using.Go(func() {
		var err error
		if fault := rescue.Do(a.opts.Logger, "console: "+name, func() { err = run(a.ctx) }); fault != nil {
			err = fault
		}
		if err != nil {
			a.opts.Logger.Error("console: " + name + ": " + err.Error())
		}
		a.tasks.end(name, err)
	})
	return a.tasks.get(name), nil
}

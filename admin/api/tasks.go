package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"gotycoon/internal/rescue"
)

// Task is work that takes longer than a request.
type Task struct {
	Running bool       `json:"running"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Error   string     `json:"error,omitempty"`
}

// tasks holds the latest task of each name. The zero value is ready for use.
type tasks struct {
	mu sync.Mutex // protects of
	of map[string]*Task
}

// get returns a copy of the task with this name, nil if there has been none.
func (t *tasks) get(name string) *Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.of[name]; found != nil {
		return new(*found)
	}
	return nil
}

// begin notes the start of a task. It returns false if a task with this name is running.
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

// start runs a task that goes on after the request. The caller has entered, so the sources stay
// until the task ends. Close ends the task's context.
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

package cluster

import (
	"encoding/json"
	"fmt"
)

// The versions of what members say to each other: these messages, those of the elector in them, the
// State, and what a member promises by its answers.
//
// The first message on each connection is the greeting of the member that has opened it, which says
// which versions its program speaks; the other member answers with its own. Two programs that have
// none in common do not hear each other, and both logs say so: a member that took a message for
// something else could break a promise. A connection without a greeting is of version 1.
//
// A change that an older program would not understand, or would answer with less than it means, is
// a new version: newestVersion grows. So is a new field of the State, since an older leader would
// drop it. While a program also behaves by a former version towards members that speak no later
// one, oldestVersion stays, and a cluster goes over to the program one member after the other.
const (
	newestVersion = 1
	oldestVersion = 1
)

// greeting is the body of a kindGreeting, as JSON.
type greeting struct {
	Newest int `json:"newest"`
	Oldest int `json:"oldest"`
}

// fits returns why two programs cannot be members of one cluster.
func (g greeting) fits(other greeting) error {
	if g.Newest >= other.Oldest && other.Newest >= g.Oldest {
		return nil
	}
	older := "this server"
	if other.Newest < g.Newest {
		older = "that member"
	}
	return fmt.Errorf("its program speaks the versions %d to %d of the cluster's messages, and that of this "+
		"server %d to %d: update %s to a program that has one of them in common with all members",
		other.Oldest, other.Newest, g.Oldest, g.Newest, older)
}

// message returns the greeting as it is sent.
func (g greeting) message() message {
	body, _ := json.Marshal(g) // two numbers, which does not fail
	return message{kind: kindGreeting, body: body}
}

// greeted reads the greeting of another member. The log is told once why the member is not heard.
func (m *mesh) greeted(name string, body []byte) error {
	var other greeting
	err := json.Unmarshal(body, &other)
	if err == nil {
		err = m.versions.fits(other)
	}
	text := ""
	if err != nil {
		text = "cluster: " + name + " is not heard: " + err.Error()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if text != m.unheard[name] {
		if m.unheard[name] = text; err != nil {
			m.log.Error(text)
		}
	}
	return err
}

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Cluster is the cluster of a server, whose members elect the primary.
type Cluster interface {
	// State asks the members. Those that have not answered when ctx ends are shown as such.
	State(ctx context.Context) ClusterState
	// Order has the primary carry out what an operator wants.
	Order(ctx context.Context, o ClusterOrder) error
}

// ClusterState describes a cluster as one of its members sees it.
type ClusterState struct {
	Name      string          `json:"name"`
	Vote      string          `json:"vote"`      // who holds it
	Self      string          `json:"self"`      // address of this member
	Primary   string          `json:"primary"`   // address; empty: no member says that it is the primary
	Term      uint64          `json:"term"`      // of the newest appointment
	Required  int             `json:"required"`  // followers that must have an update
	Followers int             `json:"followers"` // members whose confirmations can count
	Present   *int            `json:"present"`   // those that are there; null: only the primary knows
	Waiting   int64           `json:"waiting"`   // answers of this server that wait for followers
	Changes   uint64          `json:"changes"`   // appointments since the start of this server
	Changed   int64           `json:"changed"`   // the latest of them, or the start, in UNIX milliseconds
	Trouble   string          `json:"trouble"`   // what must be seen; empty: all is well
	Members   []ClusterMember `json:"members"`
}

// ClusterMember is a member of a cluster.
type ClusterMember struct {
	Address  string         `json:"address"`
	Witness  bool           `json:"witness"`
	Joining  bool           `json:"joining"` // it has no vote yet
	Answers  bool           `json:"answers"` // what follows is not known of one that does not
	Role     string         `json:"role"`
	Term     uint64         `json:"term"`
	Since    int64          `json:"since"` // UNIX milliseconds
	ServerID int            `json:"serverId"`
	Follows  string         `json:"follows"` // the primary as far as it knows
	Seconds  *float64       `json:"seconds"` // behind the primary; null: not known
	Missing  string         `json:"missing"` // why its data are not complete; empty: they are
	Trouble  string         `json:"trouble"` // why it has no other role
	Asides   []ClusterAside `json:"asides"`
}

// ClusterAside is a log of updates that a member has put aside.
type ClusterAside struct {
	Dir     string `json:"dir"`
	Updates int    `json:"updates"` // 0: not known
}

// ClusterOrder is what an operator wants of a cluster.
type ClusterOrder struct {
	Do     string `json:"do"`     // switchover, remove or require
	Name   string `json:"name"`   // of a member
	Number *int   `json:"number"` // of followers, of require
}

const (
	clusterTask = "order to the cluster"
	clusterOff  = "This server is in no cluster. Start it with -cluster NAME and -members, the addresses of all members, to have them elect the primary."

	clusterStateTime = time.Second // less than the pause between two looks of a page
	clusterOrderTime = time.Minute
)

func (a *API) cluster(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	if s.Cluster == nil {
		return off(clusterOff), nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), clusterStateTime)
	defer cancel()
	return map[string]any{"state": s.Cluster.State(ctx), "task": a.tasks.get(clusterTask)}, nil
}

// orderCluster begins to carry out an order, which may take longer than a browser waits.
func (a *API) orderCluster(w http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	if s.Cluster == nil {
		return nil, refused(http.StatusNotImplemented, "%s", clusterOff)
	}
	var o ClusterOrder
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<12)).Decode(&o); err != nil {
		return nil, refused(http.StatusBadRequest, "the order is not readable: %v", err)
	}
	what, err := o.text()
	if err != nil {
		return nil, err
	}
	answer, err := a.start(clusterTask, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, clusterOrderTime)
		defer cancel()
		if err := s.Cluster.Order(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
	if err == nil {
		a.note(r, "order to the cluster: "+what)
	}
	return answer, err
}

// text says an order to people, or what is wrong with it.
func (o *ClusterOrder) text() (string, error) {
	switch {
	case (o.Do == "switchover" || o.Do == "remove") && o.Name != "":
		return o.Do + " " + o.Name, nil
	case o.Do == "require" && o.Number != nil && *o.Number >= 0:
		return fmt.Sprintf("require %d", *o.Number), nil
	}
	return "", refused(http.StatusBadRequest, "an order is a switchover or remove with the name of a member, or require with a number of followers")
}

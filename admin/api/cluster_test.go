package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/admin"
	"gotycoon/admin/api"
)

// fakeCluster carries orders out when the test wants it.
type fakeCluster struct {
	orders chan api.ClusterOrder
	result chan error
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{make(chan api.ClusterOrder, 10), make(chan error, 10)}
}

// State implements api.Cluster.
func (f *fakeCluster) State(ctx context.Context) api.ClusterState {
	if _, limited := ctx.Deadline(); !limited {
		panic("a member that is paused would hold the page for ever")
	}
	return api.ClusterState{Name: "shop", Members: []api.ClusterMember{{Address: "a:1", Asides: []api.ClusterAside{}}}}
}

// Order implements api.Cluster.
func (f *fakeCluster) Order(ctx context.Context, o api.ClusterOrder) error {
	f.orders <- o
	select {
	case err := <-f.result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestOrdersToTheCluster(t *testing.T) {
	f := newFakeCluster()
	s := serve(t, api.Options{}, func(_ *admin.Options, src *api.Sources) { src.Cluster = f })
	require.Equal(t, true, s.get("server")["cluster"])
	answer := s.get("cluster")
	require.Equal(t, "shop", answer["state"].(map[string]any)["name"])
	require.Nil(t, answer["task"])

	for _, wrong := range []string{
		"", "x", `{}`, `{"do":"require"}`, `{"do":"require","number":-1}`, `{"do":"require","number":1.5}`, `{"do":"switchover"}`, `{"do":"remove"}`,
		`{"do":"add","name":"a:1"}`,
	} {
		status, text := s.change(http.MethodPost, "cluster", wrong)
		require.Equal(t, http.StatusBadRequest, status, "%s: %s", wrong, text)
	}
	require.Empty(t, f.orders)

	status, text := s.change(http.MethodPost, "cluster", `{"do":"require","number":2}`)
	require.Equal(t, http.StatusOK, status, text)
	o := <-f.orders
	require.Equal(t, "require", o.Do)
	require.Equal(t, 2, *o.Number)
	require.Equal(t, true, s.get("cluster")["task"].(map[string]any)["running"])
	status, text = s.change(http.MethodPost, "cluster", `{"do":"remove","name":"a:1"}`)
	require.Equal(t, http.StatusConflict, status, text)
	f.result <- errors.New("there is no primary now")
	task := map[string]any{}
	require.Eventually(t, func() bool {
		task = s.get("cluster")["task"].(map[string]any)
		return task["running"] == false
	}, patience, patience/3000)
	require.Equal(t, "require 2: there is no primary now", task["error"])
	status, text = s.change(http.MethodPost, "cluster", `{"do":"remove","name":"a:1"}`)
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, "a:1", (<-f.orders).Name)
	s.api.Close() // ends the order under way
}

func TestAServerInNoCluster(t *testing.T) {
	s := serve(t, api.Options{}, nil)
	require.Contains(t, s.get("cluster")["off"], "-cluster NAME")
	require.NotContains(t, s.get("server"), "cluster")
	status, text := s.change(http.MethodPost, "cluster", `{"do":"require","number":2}`)
	require.Equal(t, http.StatusNotImplemented, status, text)
}

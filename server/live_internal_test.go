package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChangesAndWhatIsInEffectAfterThem(t *testing.T) {
	old := []Setting{{Name: "port", Value: "1"}, {Name: "tout", Value: "30", Reload: true}, {Name: "th", Value: "4"}}
	next := []Setting{{Name: "port", Value: "2", Source: "x"}, {Name: "tout", Value: "20", Reload: true}, {Name: "th", Value: "4"}}
	changed, fixed := changes(old, next)
	require.Equal(t, []string{"tout"}, changed)
	require.Equal(t, []string{"port"}, fixed)
	require.Equal(t, []Setting{old[0], next[1], old[2]}, merge(old, next))
}

func TestPaceChanges(t *testing.T) {
	c := newPace()
	quit, done := make(chan struct{}), make(chan struct{})
	calls := make(chan struct{})
	go func() {
		defer close(done)
		c.run(quit, func() {
			select {
			case calls <- struct{}{}:
			case <-quit:
			}
		})
	}()
	c.set(time.Hour)
	c.set(time.Millisecond)
	<-calls
	<-calls
	close(quit)
	<-done
}

package mapstore_test

import (
	"testing"

	"gotycoon/db/mapstore"
	"gotycoon/db/store"
	"gotycoon/db/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return mapstore.New() })
}

# What CI runs is "make test". Every target is one command that can be copied from here.
GO       ?= go
PORT     ?= 1978
FUZZTIME ?= 30s

.PHONY: build run test test-tools test-race bench fuzz lint fmt cover clean

build: ## the commands, into bin/
	$(GO) build -trimpath -o bin/ ./cmd/...
	$(GO) -C tools/replsql build -trimpath -o ../../bin/ ./cmd/...

run: build ## a server with a persistent database and its update log under ./data
	@mkdir -p data && printf 'Try in another terminal:\n  curl -X PUT -d hello http://localhost:$(PORT)/greeting\n  curl http://localhost:$(PORT)/greeting\n  curl http://localhost:$(PORT)/rpc/report\n' && exec bin/ktserver -port $(PORT) -ulog data/ulog -sid 1 data/casket.kct

# Programs of Debian that some tests try the server with. A test without its programs is skipped, and says so.
TEST_TOOLS := chromium=chromium psql=postgresql promtool=prometheus curl=curl openssl=openssl ip=iproute2 mandoc=mandoc fish=fish zsh=zsh

test-tools: ## what some tests need beside Go, from Debian's packages; as root
	@missing=; for t in $(TEST_TOOLS); do command -v $${t%%=*} >/dev/null || missing="$$missing $${t#*=}"; done; \
	if [ -n "$$missing" ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi

test: lint test-race ## everything that must hold before a change is handed in

test-race: ## all tests, recorded conversations of the original included, under the race detector
	$(GO) test -race -timeout 9m ./...
	$(GO) -C tools/replsql test -race -timeout 9m ./...

bench: build ## the server beside redis-server, as a table for BENCHMARKS.md, then the benchmarks of the packages
	$(GO) run ./internal/bench -server bin/ktserver && $(GO) test -run '^$$' -bench . -benchmem ./...

fuzz: ## every fuzz target for FUZZTIME
	@set -e; for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

lint: ## go vet, formatting, and our own rules: import directions, comments, no global state
	$(GO) -C tools/replsql vet ./...
	$(GO) vet ./... && test -z "$$(gofmt -s -l . | tee /dev/stderr)" && $(GO) test ./internal/lint

fmt: ## format all sources
	gofmt -s -w .

cover: ## test coverage of each function; coverage.out for "go tool cover -html"
	$(GO) test -coverpkg=./... -coverprofile=coverage.out ./... && $(GO) tool cover -func=coverage.out

clean: ## what can be built again; ./data stays
	rm -rf bin coverage.out

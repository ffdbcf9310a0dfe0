# What CI runs is "make test". Every target is one command that can be copied from here.
GO       ?= go
PORT     ?= 1978
CONSOLE  ?= 1990
FUZZTIME ?= 30s
VERSION  ?= $(shell sed -n 's/^var number = "\(.*\)"$$/\1/p' internal/version/version.go)
ARCH     ?= $(shell $(GO) env GOARCH)
DIST     ?= dist
STAGE    := $(DIST)/stage-$(ARCH)
COMMANDS := ktserver ktremotemgr kttimedmgr ktutilmgr

# What was built, and when its sources were changed last. In a tarball of "git archive", which has no
# repository, revision.txt says both; in another copy of the sources nobody knows the revision.
GIT      := $(wildcard .git)
REVISION ?= $(if $(GIT),$(shell git rev-parse HEAD)$(shell test -z "$$(git status --porcelain)" || echo +dirty))
SOURCE_DATE_EPOCH ?= $(shell $(if $(GIT),git log -1 --format=%ct,\
	sed -n 's/^[0-9a-f]* //p' internal/version/revision.txt | grep . || stat -c %Y internal/version/version.go))
NAMED     = -X gotycoon/internal/version.number=$(VERSION) -X gotycoon/internal/version.revision=$(REVISION)

.PHONY: lint-linux lint-darwin build commands run run-cluster test test-tools test-race upgrade-test bench bench-ladder bench-check fuzz lint notice fmt cover stage packages deb rpm release dist reproducible clean

build: commands ## the commands, into bin/
	$(GO) -C tools/replsql build -trimpath -ldflags="$(NAMED)" -o ../../bin/ ./cmd/...

# ktreplsql brings SQLite, which takes a third of the time of a first build; nobody needs it to try the server.
commands:
	$(GO) build -trimpath -ldflags="$(NAMED)" -o bin/ ./cmd/...

run: commands ## a server with a persistent database and its update log under ./data, and a console
	@mkdir -p data && printf 'Try in another terminal:\n  curl -X PUT -d hello http://localhost:$(PORT)/greeting\n  curl http://localhost:$(PORT)/greeting\n  curl http://localhost:$(PORT)/rpc/report\nand in a browser: http://localhost:$(CONSOLE)/\n' && exec bin/ktserver -port $(PORT) -admin 127.0.0.1:$(CONSOLE) -ulog data/ulog -sid 1 data/casket.kct

run-cluster: commands ## three servers over a PostgreSQL of its own under ./data, and a console
	@$(GO) build -o bin/runcluster ./internal/runcluster && exec bin/runcluster -port $(PORT) -console $(CONSOLE)

# Programs and Python's modules that some tests try the server with, and the packages of Debian that have them. A test without its programs
# is skipped, and says so; with GOTYCOON_CI=1, as .ci/run sets it, it fails.
TEST_TOOLS := chromium=chromium psql=postgresql promtool=prometheus curl=curl openssl=openssl ip=iproute2 mandoc=mandoc fish=fish zsh=zsh etcd=etcd-server haproxy=haproxy mkfs.ext4=e2fsprogs systemd-analyze=systemd memccp=libmemcached-tools
TEST_MODULES := pylibmc=python3-pylibmc memcache=python3-memcache

test-tools: ## what some tests need beside Go, from Debian's packages; as root
	@missing=; for t in $(TEST_TOOLS); do command -v $${t%%=*} >/dev/null || missing="$$missing $${t#*=}"; done; \
	for m in $(TEST_MODULES); do /usr/bin/python3 -I -c "import $${m%%=*}" 2>/dev/null || missing="$$missing $${m#*=}"; done; \
	if [ -n "$$missing" ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi

test: lint-linux test-race ## everything that must hold before a change is handed in

# Many tests wait for other processes, so four packages at once leave no core idle.
PACKAGES ?= 4

test-race: ## all tests, recorded conversations of the original included, under the race detector
	$(GO) test -race -vet=off -timeout 20m -p $(PACKAGES) ./...
	$(GO) -C client test -race -vet=off -timeout 20m ./...
	$(GO) -C tools/replsql test -race -vet=off -timeout 20m ./...
	$(GO) -C packaging/kubernetes test ./...
	$(GO) -C compat/openapi test -timeout 5m ./...

OLD      ?=

upgrade-test: ## servers go over from the programs of another revision and back, under load; OLD=REVISION
	@test -n "$(OLD)" || { echo "from which revision? make upgrade-test OLD=REVISION" >&2; exit 2; }
	@dir=$$(mktemp -d) && trap "git worktree remove --force $$dir/tree; rm -rf $$dir" EXIT && git worktree add -q --detach $$dir/tree $(OLD) && \
	$(GO) -C $$dir/tree build -trimpath -o $$dir/bin/ ./cmd/... && GOTYCOON_OLD=$$dir/bin $(GO) test -count=1 -v ./compat/upgrade

LADDER   ?=
BENCH    := $(GO) run ./internal/bench -server bin/ktserver

bench: build ## the server beside redis-server and at 1 to 64 million records, as tables for BENCHMARKS.md, then the benchmarks of the packages
	@echo "This takes about an hour, most of it with 64 million records, for which TMPDIR needs 28 GiB. LADDER='-sizes 1m,4m' takes less, LADDER=-big more."
	$(BENCH) $(LADDER) && $(GO) test -run '^$$' -bench . -benchmem ./...

bench-ladder: build ## 1 to 64 million records only, half an hour, and the pictures of docs/tuning.md from it; LADDER='-sizes 1m,4m -db kch'
	$(BENCH) -only ladder $(LADDER) -tsv docs/images/ladder.tsv
	$(BENCH) -plot docs/images/ladder.tsv -o docs/images

bench-check: build ## fails when an operation takes 15 % more processor time than in internal/bench/recorded.tsv, two minutes; RECORD=1 writes the table
	$(BENCH) -only check $(if $(RECORD),-record)

fuzz: ## every fuzz target for FUZZTIME
	@set -e; for m in . client; do for p in $$($(GO) -C $$m list ./...); do for f in $$($(GO) -C $$m test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
		echo "$$p $$f"; $(GO) -C $$m test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done; done

ALL    := ./... gotycoon/client/...
LINTER := $(GO) tool -modfile=internal/lint/tools/go.mod

lint: lint-linux lint-darwin ## go vet (for macOS too), formatting, staticcheck, unparam, NOTICE, and our own rules: import directions, comments, no global state

lint-linux:
	$(GO) -C tools/replsql vet ./...
	$(GO) -C client vet ./...
	$(GO) vet ./... && test -z "$$(gofmt -s -l . | tee /dev/stderr)" && $(GO) test ./internal/lint
	$(LINTER) staticcheck -tests=false $(ALL) && $(LINTER) unparam $(ALL)
	$(GO) run ./packaging/legal check

lint-darwin:
	GOOS=darwin $(GO) vet ./...

notice: ## NOTICE and the licences of the packages, after a module was added, updated or dropped
	$(GO) run ./packaging/legal notice

fmt: ## format all sources
	gofmt -s -w .

cover: ## test coverage of each function; coverage.out for "go tool cover -html"
	$(GO) test -coverpkg=./...,gotycoon/client/... -coverprofile=coverage.out $(ALL) && $(GO) tool cover -func=coverage.out

# The programs describe themselves: those of the stage, where they run on this machine.
HOST      = $(shell $(GO) env GOOS)/$(shell $(GO) env GOARCH)
RUN       = $(if $(filter linux/$(ARCH),$(HOST)),$(STAGE)/bin/,$(GO) run ./cmd/)

stage: ## what packages hold, into dist/: static binaries, manual pages, completions, licences, a bill of materials
	rm -rf $(STAGE) && mkdir -p $(STAGE)/bin $(STAGE)/man $(STAGE)/bash $(STAGE)/zsh $(STAGE)/fish
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -buildvcs=false -ldflags="-s -w $(NAMED)" -o $(STAGE)/bin/ ./cmd/...
	cd tools/replsql && CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -buildvcs=false -ldflags="-s -w $(NAMED)" -o $(abspath $(STAGE))/bin/ ./cmd/...
	@set -e; for c in $(COMMANDS); do $(RUN)$$c man > $(STAGE)/man/$$c.1; gzip -9n $(STAGE)/man/$$c.1; \
		$(RUN)$$c completion bash > $(STAGE)/bash/$$c; $(RUN)$$c completion zsh > $(STAGE)/zsh/_$$c; $(RUN)$$c completion fish > $(STAGE)/fish/$$c.fish; done
	cp LICENSE NOTICE CHANGELOG.md $(STAGE)/
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(GO) run ./packaging/legal stage -version $(VERSION) -arch $(ARCH) $(STAGE)

packages: deb rpm ## the Debian and RPM packages, into dist/; VERSION=1.2.3 and ARCH=arm64 change what they are

deb rpm: stage
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) STAGE=$(STAGE) VERSION=$(VERSION) ARCH=$(ARCH) $(GO) tool -modfile=packaging/tools/go.mod nfpm package -f packaging/nfpm.yaml -p $@ -t $(DIST)/

TARBALL   = $(DIST)/gotycoon-$(VERSION)-linux-$(ARCH).tar.gz

release: stage ## a tarball for any Linux, into dist/
	tar -C $(DIST) --format=ustar --transform 's,^stage-$(ARCH),gotycoon-$(VERSION),' --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@$(SOURCE_DATE_EPOCH) --sort=name --exclude=copyright -cf - stage-$(ARCH) | gzip -9n > $(TARBALL)
	tar -tzf $(TARBALL) | head -3

dist: packages release ## all of these for a release, with the bill of materials and SHA256SUMS
	cp $(STAGE)/sbom.cdx.json $(DIST)/gotycoon-$(VERSION)-linux-$(ARCH).cdx.json
	cd $(DIST) && sha256sum gotycoon[-_]$(VERSION)[-_]*.* > SHA256SUMS && cat SHA256SUMS

reproducible: ## two clones of HEAD, in different places and surroundings, make the same packages byte for byte; some minutes
	packaging/reproducible.sh

clean: ## what can be built again; ./data stays
	rm -rf bin dist coverage.out

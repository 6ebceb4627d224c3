# Countersign. `make run` is enough to try it on a fresh Debian machine;
# `make help` lists the rest.

GO          ?= go
TAGS        := gles
BINARY      := build/countersign
KEEPER      := build/countersign-keeper
PREFIX      ?= $(HOME)/.local
VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOFLAGS_ALL := -tags $(TAGS)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# What a Debian machine needs to build, and to run the tests besides.
BUILD_PACKAGES := gcc libc6-dev pkg-config libgl1-mesa-dev libgles-dev xorg-dev
TEST_PACKAGES  := xvfb xauth dbus dbus-daemon dbus-x11 xdotool imagemagick

# Packages without cgo: they have to compile for Windows too. The tests of the
# engine itself need SQLite, and with it cgo.
PORTABLE := ./worker/api/... ./worker/execute ./worker/policy ./worker/safetext ./app/config ./app/control

.PHONY: help run build install test lint bench e2e clean build-deps test-deps go-ok

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build, then open the demo: sample sessions on an embedded harness
	./$(BINARY) demo

build: build-deps go-ok ## build the program to build/countersign, and its helper beside it
	@mkdir -p build
	$(GO) build $(GOFLAGS_ALL) -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o $(BINARY) ./app
	CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath -ldflags '-s -w' -o $(KEEPER) ./worker/execute/keeper

install: build ## install to PREFIX/bin (PREFIX=~/.local)
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin $(BINARY) $(KEEPER)

test: test-deps lint e2e-binary ## everything that shows it works: lint, unit tests, end to end
	COUNTERSIGN_BIN=$(CURDIR)/$(BINARY) $(GO) test -race $(GOFLAGS_ALL) -timeout 15m $(TESTFLAGS) ./...

lint: build-deps go-ok ## gofmt, go vet (also for Windows), staticcheck
	@unformatted=$$(gofmt -l app assets harness store ui worker); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(GOFLAGS_ALL) ./...
	CGO_ENABLED=0 GOOS=windows $(GO) build ./worker
	CGO_ENABLED=0 GOOS=windows $(GO) vet $(PORTABLE)
	$(GO) run $(STATICCHECK) $(GOFLAGS_ALL) ./...

e2e: test-deps e2e-binary ## the built program as separate processes under kills and a bad network, and its window under Xvfb
	COUNTERSIGN_BIN=$(CURDIR)/$(BINARY) $(GO) test -count=1 -v -p 1 $(GOFLAGS_ALL) -timeout 15m -run '^TestEndToEnd' ./app ./app/chaos

.PHONY: e2e-binary
e2e-binary: build

.PHONY: chaos
chaos: build ## real commands under kills and a bad network: N items (200), the same again with SEED
	$(GO) run $(GOFLAGS_ALL) ./app/chaos -bin $(BINARY) -items $(or $(N),200) $(if $(SEED),-seed $(SEED))

bench: build-deps go-ok ## benchmarks
	$(GO) test $(GOFLAGS_ALL) -run '^$$' -bench . -benchmem ./...

clean: ## remove what was built
	rm -rf build

# Installs packages only when one is missing, and says nothing when none is.
define install
	@command -v dpkg-query >/dev/null 2>&1 || exit 0; \
	missing=""; for p in $(1); do \
		dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$p"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	echo "installing:$$missing"; \
	as=""; if [ "$$(id -u)" != 0 ]; then \
		command -v sudo >/dev/null 2>&1 || { echo "not root and no sudo: as root, run: apt-get install$$missing"; exit 1; }; as=sudo; \
	fi; \
	$$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing
endef

build-deps:
	$(call install,$(BUILD_PACKAGES))

test-deps:
	$(call install,$(BUILD_PACKAGES) $(TEST_PACKAGES))

# From 1.21 on Go fetches the version that go.mod names by itself.
go-ok:
	@command -v $(GO) >/dev/null 2>&1 || { \
		echo "Go is not installed. Install Go 1.26 (1.21 or later fetches it by itself) as https://go.dev/doc/install says,"; \
		echo "put its bin directory on PATH, and run make again."; exit 1; }
	@v=$$(GOTOOLCHAIN=local $(GO) env GOVERSION 2>/dev/null); minor=$$(echo "$$v" | sed -n 's/^go1\.\([0-9]*\).*/\1/p'); \
	if [ -n "$$minor" ] && [ "$$minor" -lt 21 ]; then \
		echo "$$v is too old to fetch the Go that go.mod names. Install Go 1.26 (1.21 or later will do) as"; \
		echo "https://go.dev/doc/install says, put its bin directory on PATH before the old one, and run make again."; exit 1; fi

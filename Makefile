# What can be done with netwatch. CONTRIBUTING.md tells when to do it.

BUILD_PACKAGES := libnl-3-dev libnl-route-3-dev libcurl4-openssl-dev libssl-dev libsqlite3-dev pkgconf
DEMO_PACKAGES := $(BUILD_PACKAGES) iproute2 util-linux
# Each serves some of the tests, which are skipped without it.
TEST_PACKAGES := curl openssl systemd python3-httpbin gunicorn
# Other clients and queues: Redis's programs without its service, and what installs the queues written in Python.
BENCH_PACKAGES := $(DEMO_PACKAGES) curl redis-tools python3-venv
PREFIX ?= /usr/local
UNITS := $(PREFIX)/lib/systemd/system

.PHONY: demo test quick sanitize random soak fuzz bench check docs run install clean

## demo: show the main job in private network namespaces: cable out, requests kept, cable in, requests delivered
demo:
	@scripts/setup $(DEMO_PACKAGES)
	@scripts/build --product netwatch
	@scripts/demo .build/debug/netwatch "$$(scripts/find-nginx)"

## test: every test once, then the demo: minutes on a fresh clone, a minute or two after that
test:
	@scripts/setup $(DEMO_PACKAGES) -- $(TEST_PACKAGES)
	@scripts/test

## quick: build and run some tests, e.g. make quick TARGET=ClientCoreTests or TARGET=CookieJarTests
export QUICK_FILTER := $(value TARGET)
quick:
	@$(if $(QUICK_FILTER),,$(error TARGET is missing, e.g. make quick TARGET=ClientCoreTests))scripts/setup $(DEMO_PACKAGES)
	@scripts/test "$$QUICK_FILTER"

## sanitize: the tests under the thread and the address sanitizer
sanitize:
	@scripts/setup $(DEMO_PACKAGES) -- $(TEST_PACKAGES)
	@scripts/sanitize

## random: the randomised checks at CI's size, and a minute of the fuzzer
random:
	@scripts/setup $(DEMO_PACKAGES) -- $(TEST_PACKAGES)
	@scripts/random medium

## soak: the randomised checks at full size, then `make sanitize` and the suites that it leaves out: hours
soak:
	@scripts/setup $(DEMO_PACKAGES) -- $(TEST_PACKAGES)
	@scripts/random full
	@NETWATCH_CHECKS=medium scripts/sanitize everything

## fuzz: arbitrary bytes as if from the kernel, for a minute
fuzz:
	@scripts/setup $(BUILD_PACKAGES)
	@scripts/fuzz

## bench: how fast, compared with C programs that do the same and with other programs; half an hour
bench:
	@scripts/setup $(BENCH_PACKAGES)
	@scripts/bench

## check: format, layers, warnings, the documentation and its code, the embedding example
check:
	@scripts/setup $(DEMO_PACKAGES)
	@scripts/check

## docs: the documentation of the libraries as a static site in .build/docs
docs:
	@scripts/setup $(BUILD_PACKAGES)
	@scripts/docs

## run: watch a host, e.g. make run HOST=example.com
run:
	@scripts/setup $(BUILD_PACKAGES)
	@scripts/build --product netwatch
	.build/debug/netwatch host $(HOST)

## install: a release build and the units below PREFIX (default /usr/local)
install:
	@scripts/setup $(BUILD_PACKAGES)
	swift build -c release --product netwatch --static-swift-stdlib
	install -D -m 755 .build/release/netwatch $(DESTDIR)$(PREFIX)/bin/netwatch
	install -D -m 644 -t $(DESTDIR)$(UNITS) $(wildcard systemd/*.service systemd/*.socket systemd/*.target)
	sed -i 's,/usr/bin/netwatch,$(PREFIX)/bin/netwatch,' $(DESTDIR)$(UNITS)/netwatch*.service

clean:
	rm -rf .build

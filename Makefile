# A thin wrapper: every target sets up what it needs (tools/setup), then asks Meson and Ninja.
BUILD ?= build
.DEFAULT_GOAL := all
.PHONY: all setup demo check bench install fuzz sanitize nightly clean

all: setup
	@ninja -C $(BUILD)
setup:
	@tools/setup $(BUILD)
demo: all
	@tools/demo $(BUILD)
check: setup
	@tools/check $(BUILD)
nightly: setup
	@tools/check --nightly $(BUILD)
bench: all
	@$(BUILD)/manycore bench all
install: all
	@meson install -C $(BUILD)
fuzz: setup
	@tools/fuzz
sanitize: setup
	@tools/sanitize
clean:
	rm -rf $(BUILD) build-*

# A thin wrapper: every target sets up what it needs (tools/setup), then asks Meson and Ninja.
BUILD ?= build
.DEFAULT_GOAL := all
.PHONY: all setup demo check nightly bench install fuzz sanitize clean

all: setup
	@ninja -C $(BUILD)
setup:
	@tools/setup $(BUILD)
demo:
	@tools/setup $(BUILD) demo
	@tools/demo $(BUILD)
check:
	@tools/setup $(BUILD) demo check
	@tools/check $(BUILD)
nightly:
	@tools/setup $(BUILD) demo check nightly
	@tools/check --nightly $(BUILD)
bench: all
	@$(BUILD)/manycore bench all
install: all
	@meson install -C $(BUILD)
fuzz:
	@tools/setup $(BUILD) check
	@tools/fuzz
sanitize:
	@tools/setup $(BUILD) check
	@tools/sanitize
clean:
	rm -rf $(BUILD) build-sanitize build-thread build-aarch64 build-install

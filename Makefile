# Makefile - builds, tests and checks all of Trainyard.  `make help` tells the targets.
#
# Knobs:  CC=gcc|clang-14   SAN=address|thread   BUILD=folder   T=name (which tests)   V=1 (show commands)

SHELL := /bin/bash
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

CC := gcc
SAN ?=
BUILD ?= build$(if $(SAN),/$(SAN))$(if $(filter clang%,$(notdir $(CC))),/clang)
PREFIX ?= /usr/local
VERSION := $(shell sed -n 's/.*CLI_VERSION "\(.*\)"/\1/p' cli/version.c)
Q := $(if $(V),,@)

GEN := $(BUILD)/gen
OBJ := $(BUILD)/obj

# --- flags ---------------------------------------------------------------------------------

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
# Sanitizers want their runs soon, not fast: -O1 there, and of debugging the lines that their reports name.
OPT := $(if $(SAN),-O1 -g1,-O2 -g)
# clang has no OpenMP runtime here: its builds leave the pragmas out, with the variables that only they
# name, and libgomp serves oneDNN.  So do builds with the thread sanitizer, which cannot see libgomp's barriers.
OPENMP := $(if $(or $(filter clang%,$(notdir $(CC))),$(filter thread,$(SAN))),-Wno-unknown-pragmas -Wno-unused-variable -Wno-unused-parameter,-fopenmp)
SANFLAGS_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SANFLAGS_thread := -fsanitize=thread
SANFLAGS_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# Libraries that are not instrumented (gRPC) would be seen as racing.
export TSAN_OPTIONS ?= ignore_noninstrumented_modules=1
SANFLAGS := $(if $(SAN),$(SANFLAGS_$(SAN)))
CFLAGS := -std=c11 -D_GNU_SOURCE -I. $(OPT) $(WARN) $(SANFLAGS) -fstack-protector-strong -fPIC
LDFLAGS := $(SANFLAGS) -Wl,-z,relro,-z,now -pie

# --- sources, folder by folder -------------------------------------------------------------

sources = $(foreach folder,$(1),$(wildcard $(folder)/*.c))
objects = $(patsubst %.c,$(OBJ)/%.o,$(1))

BASE      := $(call sources,base)
PROTO     := $(call sources,proto)
RUNTIME   := $(call sources,runtime runtime/ops runtime/io runtime/onnx runtime/spec runtime/dataset runtime/model runtime/model/layers runtime/train runtime/worker runtime/cluster runtime/master)
KERNELS   := $(call sources,kernels kernels/ref kernels/cpu kernels/state kernels/io kernels/data)
DB        := $(call sources,db)
SCHEDULER := $(call sources,scheduler scheduler/engines scheduler/agent)
SHIM      := $(call sources,scheduler/shim)
SERVER    := $(call sources,server server/api)
CLI       := $(call sources,cli)
TASK      := $(call sources,task)
CAPI      := $(call sources,capi)

PROTOS    := $(wildcard proto/tensorflow/*.proto proto/trainyard/*.proto proto/onnx/*.proto)
GEN_C     := $(patsubst proto/%.proto,$(GEN)/%.pb-c.c,$(PROTOS))
GEN_OBJ   := $(patsubst $(GEN)/%.c,$(OBJ)/gen/%.o,$(GEN_C))

LIBS_CONTROL := $(BUILD)/libcli.a $(BUILD)/libserver.a $(BUILD)/libscheduler.a $(BUILD)/libdb.a $(BUILD)/libruntime.a $(BUILD)/libproto.a $(BUILD)/libbase.a
LIBS_RUNTIME := $(BUILD)/libkernels.a $(BUILD)/libruntime.a $(BUILD)/libproto.a $(BUILD)/libbase.a

LINK_CONTROL := -lmicrohttpd -lssl -lcrypto -lwebsockets -lsqlite3 -ljansson -lsodium -lcurl -lnghttp2 -lprotobuf-c -lz -lm -lpthread
# Programs have libhdf5 inside: as a shared library it would bring libcurl and thirty more to every start.
LINK_HDF5 := -l:libhdf5_serial.a -l:libsz.a -l:libaec.a
LINK_RUNTIME := -ldnnl -lgomp -lpng -ljpeg -licuuc -lzip $(LINK_HDF5) -ljansson -lnghttp2 -lssl -lcrypto -lprotobuf-c -lz -lm -ldl -lpthread

PROGRAMS := $(BUILD)/trainyard $(BUILD)/trainyard-task $(BUILD)/trainyard-shim
LIBRARY := $(BUILD)/libtrainyard.so.0

# --- what people type ----------------------------------------------------------------------

.PHONY: all help
all: $(PROGRAMS) $(LIBRARY) $(BUILD)/tf-cases $(BUILD)/tf-sessions $(BUILD)/keras-vectors $(BUILD)/saved-models ## build the programs and the page

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- programs ------------------------------------------------------------------------------

# Each is there a second time, for tests: with a disk that is slow by up to SLOW_DISK_MS (tests/slow_disk.c).
SLOW_DISK_MS ?= 150
SLOW_DISK := $(OBJ)/tests/slow_disk.o
SLOW := $(patsubst $(BUILD)/%,$(BUILD)/slow/%,$(PROGRAMS))

.PHONY: slow
slow: $(SLOW) $(BUILD)/slow_disk.so
	@echo $(SLOW_DISK_MS) >$(BUILD)/slow/disk_ms
	@ln -sf ../libtrainyard.so.0 ../libtrainyard.so $(BUILD)/slow

$(SLOW): $(SLOW_DISK) | $(BUILD)/slow
$(BUILD)/slow:
	@mkdir -p $@
$(BUILD)/slow_disk.so: $(SLOW_DISK)
	$(Q)$(CC) $(SANFLAGS) -shared -o $@ $^

, := ,
link = $(CC) $(LDFLAGS) -o $@ $(filter $(SLOW_DISK),$^) $(1) -Wl,--start-group $(2) -Wl,--end-group $(3)

$(BUILD)/trainyard $(BUILD)/slow/trainyard: $(OBJ)/cli/main.o $(LIBS_CONTROL)
	@echo "  LINK    $@"
	$(Q)$(call link,$<,$(LIBS_CONTROL),$(LINK_CONTROL))

# It has the C API for the libraries that it loads.
$(BUILD)/trainyard-task $(BUILD)/slow/trainyard-task: $(call objects,$(TASK) $(CAPI)) $(LIBS_RUNTIME) capi/exports.list
	@echo "  LINK    $@"
	$(Q)$(call link,$(call objects,$(TASK) $(CAPI)) -Wl$(,)--dynamic-list=capi/exports.list,$(LIBS_RUNTIME),$(LINK_RUNTIME))

# The C API as a shared library: runtime and kernels, nothing of them seen but the API.
$(LIBRARY): $(call objects,$(CAPI) $(RUNTIME) $(KERNELS)) $(BUILD)/libproto.a $(BUILD)/libbase.a capi/exports.map
	@echo "  LINK    $@"
	$(Q)$(CC) $(SANFLAGS) -shared -Wl,-z,relro,-z,now -Wl,-soname,$(@F) -Wl,--version-script=capi/exports.map -o $@ \
	  $(call objects,$(CAPI) $(RUNTIME) $(KERNELS)) -Wl,--start-group $(BUILD)/libproto.a $(BUILD)/libbase.a -Wl,--end-group \
	  -Wl,--as-needed $(subst $(LINK_HDF5),-lhdf5_serial,$(LINK_RUNTIME))
	@ln -sf $(@F) $(BUILD)/libtrainyard.so

$(BUILD)/trainyard-shim $(BUILD)/slow/trainyard-shim: $(call objects,$(SHIM) base/failpoint.c)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^

CASES := $(call objects,$(call sources,tests/interop/cases) tests/interop/servers.c)

$(BUILD)/tf-cases: $(CASES) $(OBJ)/gen/case.pb-c.o $(LIBS_RUNTIME)
	@echo "  LINK    $@"
	$(Q)$(call link,$(CASES) $(OBJ)/gen/case.pb-c.o,$(LIBS_RUNTIME),$(LINK_RUNTIME))

SESSIONS := $(call objects,$(call sources,tests/interop/sessions) tests/interop/servers.c \
  tests/interop/cases/case_compare.c) $(OBJ)/gen/call.pb-c.o

$(BUILD)/tf-sessions: $(SESSIONS) $(LIBS_RUNTIME)
	@echo "  LINK    $@"
	$(Q)$(call link,$(SESSIONS),$(LIBS_RUNTIME),$(LINK_RUNTIME))

VECTORS := $(call objects,$(call sources,tests/interop/keras))

$(BUILD)/keras-vectors: $(VECTORS) $(LIBS_RUNTIME)
	@echo "  LINK    $@"
	$(Q)$(call link,$(VECTORS),$(LIBS_RUNTIME),$(LINK_RUNTIME))

SAVED := $(call objects,$(call sources,tests/interop/saved) tests/interop/keras/value.c)

$(BUILD)/saved-models: $(SAVED) $(LIBS_RUNTIME)
	@echo "  LINK    $@"
	$(Q)$(call link,$(SAVED),$(LIBS_RUNTIME),$(LINK_RUNTIME))

# --- the benchmark: our training step, and the same cases in other frameworks ------------------

BENCH := $(call sources,tests/bench)

BENCH_EXECUTOR := $(call objects,$(call sources,tests/bench/executor))

$(BUILD)/bench/executor: $(BENCH_EXECUTOR) $(LIBS_RUNTIME)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(call link,$(BENCH_EXECUTOR),$(LIBS_RUNTIME),$(LINK_RUNTIME))

$(BUILD)/bench/passes: $(OBJ)/tests/bench/passes/main.o $(LIBS_RUNTIME)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(call link,$<,$(LIBS_RUNTIME),$(LINK_RUNTIME))

$(BUILD)/bench/input: $(OBJ)/tests/bench/input/main.o $(LIBS_RUNTIME)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(call link,$<,$(LIBS_RUNTIME),$(LINK_RUNTIME))

$(BUILD)/bench/load: $(OBJ)/tests/bench/load/main.o $(BUILD)/libbase.a
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lpthread

$(BUILD)/bench/live: $(OBJ)/tests/bench/live/main.o $(BUILD)/libbase.a
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lpthread

$(BUILD)/bench/queue: $(OBJ)/tests/bench/queue/main.o $(BUILD)/libscheduler.a $(BUILD)/libdb.a $(BUILD)/libbase.a
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lm -lpthread

$(BUILD)/bench/points: $(OBJ)/tests/bench/points/main.o $(BUILD)/libdb.a $(BUILD)/libbase.a
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -ljansson -lsqlite3 -lsodium -lm -lpthread

$(BUILD)/bench/flood: $(OBJ)/tests/bench/flood/main.o $(LIBS_CONTROL)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(call link,$<,$(LIBS_CONTROL),$(LINK_CONTROL))

BENCH_TRACE := $(call objects,$(call sources,tests/bench/trace))
$(BUILD)/bench/trace: $(BENCH_TRACE) $(BUILD)/libscheduler.a $(BUILD)/libdb.a $(BUILD)/libbase.a
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lm -lpthread

$(OBJ)/tests/bench/peak.o: CFLAGS += $(OPENMP)
$(BUILD)/bench/cases: $(call objects,$(BENCH)) $(LIBS_RUNTIME)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	$(Q)$(call link,$(call objects,$(BENCH)),$(LIBS_RUNTIME),$(LINK_RUNTIME))

$(BUILD)/kernel-types: $(OBJ)/tests/interop/kernel_types.o $(LIBS_RUNTIME)
	@echo "  LINK    $@"
	$(Q)$(call link,$<,$(LIBS_RUNTIME),$(LINK_RUNTIME))

$(BUILD)/tf-read $(BUILD)/tf-write: $(BUILD)/tf-%: $(OBJ)/tests/interop/tf_%.o $(LIBS_RUNTIME)
	@echo "  LINK    $@"
	$(Q)$(call link,$<,$(LIBS_RUNTIME),$(LINK_RUNTIME) -lsodium)

$(BUILD)/onnx-write: $(OBJ)/tests/interop/onnx_write.o $(LIBS_RUNTIME)
	@echo "  LINK    $@"
	$(Q)$(call link,$<,$(LIBS_RUNTIME),$(LINK_RUNTIME))

archive = rm -f $@ && ar rcs $@ $^

$(BUILD)/libbase.a: $(call objects,$(BASE))
	$(Q)$(archive)
$(BUILD)/libproto.a: $(call objects,$(PROTO)) $(GEN_OBJ)
	$(Q)$(archive)
$(BUILD)/libruntime.a: $(call objects,$(RUNTIME))
	$(Q)$(archive)
$(BUILD)/libkernels.a: $(call objects,$(KERNELS))
	$(Q)$(archive)
$(BUILD)/libcapi.a: $(call objects,$(CAPI))
	$(Q)$(archive)
$(BUILD)/libdb.a: $(call objects,$(DB)) $(OBJ)/gen/db_migrate.o
	$(Q)$(archive)
$(BUILD)/libscheduler.a: $(call objects,$(SCHEDULER))
	$(Q)$(archive)
$(BUILD)/libcli.a: $(call objects,$(filter-out cli/main.c,$(CLI)))
	$(Q)$(archive)
$(BUILD)/libserver.a: $(call objects,$(SERVER))
	$(Q)$(archive)

# --- the page: bundled once into build/web, embedded by server/assets.c ----------------------

WEB_FILES := $(wildcard web/*.html web/*.css web/*.svg web/*.mjs web/*.json web/src/*.ts* web/src/*/*.ts*)

.PHONY: web
web: build/web/stamp ## bundle the page (npm packages into web/node_modules)

web/node_modules/.package-lock.json: web/package-lock.json
	@echo "  NPM     web/"
	$(Q)cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

build/web/stamp: $(WEB_FILES) web/node_modules/.package-lock.json
	@echo "  WEB     build/web"
	$(Q)cd web && npx --no-install tsc --noEmit && node build.mjs ../build/web
	@touch $@

# --- compiling -----------------------------------------------------------------------------

# Only *_pb.c and rpc_*.c may see generated code; any other include of it does not compile.
$(OBJ)/%_pb.o: CFLAGS += -I$(GEN)
PB_TESTS := $(CASES) $(SESSIONS) $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/unit/*/*_pb_test.c))
$(PB_TESTS): CFLAGS += -I$(GEN)
$(PB_TESTS): $(GEN)/stamp

$(OBJ)/kernels/%.o: CFLAGS += $(if $(filter -O2,$(OPT)),-O3) $(OPENMP)
# The same text for each instruction set; isa.c picks one that the machine has.
ISA_FLAGS := -fno-math-errno -fno-trapping-math -ffp-contract=fast
$(OBJ)/kernels/cpu/isa_base.o: CFLAGS += $(ISA_FLAGS)
$(OBJ)/kernels/cpu/isa_avx2.o: CFLAGS += $(ISA_FLAGS) -mavx2 -mfma
$(OBJ)/kernels/cpu/isa_avx512.o: CFLAGS += $(ISA_FLAGS) -mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512
$(OBJ)/kernels/cpu/isa_avx512_bf16.o: CFLAGS += $(ISA_FLAGS) -mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx512bf16 -mprefer-vector-width=512
$(OBJ)/runtime/arithmetic.o $(OBJ)/runtime/io/bulk.o $(OBJ)/runtime/worker/near.o: CFLAGS += $(OPENMP)
# Bytes become floats here, example by example: the loops are to be vectors.
$(OBJ)/runtime/dataset/dataset_batch.o: CFLAGS += $(if $(filter -O2,$(OPT)),-O3)

# The shipped examples, as rows of a table.
EXAMPLES := $(sort $(wildcard examples/*.json))
$(OBJ)/runtime/spec/spec_example.o: CFLAGS += -I$(GEN)
$(OBJ)/runtime/spec/spec_example.o: $(GEN)/examples.inc
$(GEN)/examples.inc: $(EXAMPLES) examples Makefile
	@mkdir -p $(@D)
	$(Q){ for f in $(EXAMPLES); do printf '{"%s", (const char[]){' $$(basename $$f .json); \
	  od -v -An -tx1 $$f | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; echo "0}, $$(stat -c %s $$f)},"; done; } > $@

# The steps of the database schema, as text.
MIGRATE := $(sort $(wildcard db/migrate/*.sql))
$(GEN)/db_migrate.c: $(MIGRATE) db/migrate Makefile
	@mkdir -p $(@D)
	$(Q)for file in control metrics; do echo "const char *const db_migrate_$$file[] = {"; \
	  for f in $(MIGRATE); do case $$f in db/migrate/$$file-*) \
	    sed 's/--.*//; s/[\\"]/\\&/g; s/.*/"&\\n"/' $$f; echo ,;; esac; done; echo "0};"; done > $@

# The files of the page, plain and compressed, as rows of a table.
$(OBJ)/server/assets.o: CFLAGS += -I$(GEN)
$(OBJ)/server/assets.o: $(GEN)/assets.inc
$(GEN)/assets.inc: build/web/stamp Makefile
	@mkdir -p $(@D)
	$(Q)hex() { od -v -An -tx1 | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; }; \
	for f in build/web/*.*; do \
	  printf '{"/%s", (const unsigned char[]){' $$(basename $$f); hex <$$f; \
	  printf '0}, %d, (const unsigned char[]){' $$(stat -c %s $$f); gzip -9nc $$f | hex; \
	  printf '0}, %d, "\\"%s\\""},\n' $$(gzip -9nc $$f | wc -c) $$(sha256sum <$$f | cut -c1-16); done >$@

# Not order-only: a changed .proto changes structs, and an object with the old ones would link all the same.
$(OBJ)/%_pb.o: %_pb.c $(GEN)/stamp
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OBJ)/gen/%.o: $(GEN)/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g -fPIC $(SANFLAGS) -I$(GEN) -c -o $@ $<

# With an empty recipe, make looks at their times again.
$(GEN_C) $(GEN)/case.pb-c.c $(GEN)/call.pb-c.c: $(GEN)/stamp ;
$(GEN)/stamp: $(PROTOS) tests/interop/case.proto tests/interop/call.proto
	@mkdir -p $(GEN)
	@echo "  PROTOC  proto/"
	$(Q)protoc-c -Iproto --c_out=$(GEN) $(PROTOS)
	$(Q)protoc-c -Itests/interop --c_out=$(GEN) tests/interop/case.proto tests/interop/call.proto
	@touch $@

# --- unit tests: one program per file, the list of its tests made from its TEST(...) lines --

UNIT_CONTROL := $(wildcard tests/unit/base/*_test.c tests/unit/proto/*_test.c tests/unit/db/*_test.c tests/unit/scheduler/*_test.c \
                           tests/unit/server/*_test.c tests/unit/cli/*_test.c)
UNIT_RUNTIME := $(wildcard tests/unit/runtime/*_test.c tests/unit/kernels/*_test.c tests/unit/task/*_test.c tests/unit/capi/*_test.c tests/kernels/*_test.c tests/train/*_test.c)
UNIT_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(UNIT_CONTROL) $(UNIT_RUNTIME))
UNIT_WANTED := $(foreach p,$(UNIT_PROGRAMS),$(if $(T),$(if $(findstring $(T),$(p)),$(p)),$(p)))

$(GEN)/%_test.main.c: %_test.c Makefile
	@mkdir -p $(@D)
	$(Q){ echo '#include "$<"'; echo 'int main(void) { const struct CMUnitTest tests[] = {'; \
	  sed -n 's/^TEST(\([a-z0-9_]*\)).*/    cmocka_unit_test(\1),/p' $<; \
	  echo '}; return test_end(cmocka_run_group_tests_name("$*", tests, NULL, NULL)); }'; } > $@

$(patsubst %.c,$(OBJ)/%.o,$(UNIT_CONTROL) $(UNIT_RUNTIME)): $(OBJ)/%_test.o: $(GEN)/%_test.main.c
	@mkdir -p $(@D)
	@echo "  CC      $*_test.c"
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(patsubst %.c,$(BUILD)/%,$(UNIT_CONTROL)): $(BUILD)/%: $(OBJ)/%.o $(LIBS_CONTROL)
	@mkdir -p $(@D)
	$(Q)$(call link,$(filter %.o,$^),$(LIBS_CONTROL),$(LINK_CONTROL) -lcmocka)
$(patsubst %.c,$(BUILD)/%,$(UNIT_RUNTIME)): $(BUILD)/%: $(OBJ)/%.o $(LIBS_RUNTIME) $(BUILD)/libcapi.a
	@mkdir -p $(@D)
	$(Q)$(call link,$<,$(LIBS_RUNTIME) $(BUILD)/libcapi.a,$(LINK_RUNTIME) -lcmocka)

# This one is of the shim, which is in no library.
$(BUILD)/tests/unit/scheduler/mask_test: $(OBJ)/scheduler/shim/mask.o

# This one starts real shims, on a slow disk too.
$(BUILD)/tests/unit/scheduler/agent_test: | $(BUILD)/trainyard-shim $(BUILD)/slow/trainyard-shim

.PHONY: unit
# Most keep one core busy.
UNIT_AT_ONCE ?= 2
unit: $(UNIT_WANTED) ## unit tests (T=part of a name)
	$(Q)tests/run.sh --timeout $(if $(SAN),300,180) --at-once $(UNIT_AT_ONCE) $(UNIT_WANTED)

# --- checks --------------------------------------------------------------------------------

C_FILES = $(or $(shell git ls-files -- '*.c' '*.h'),$(error git lists no files here, so there is nothing to check))

.PHONY: lint lint-arrows lint-python lint-symbols lint-words lint-lengths lint-format format
lint: lint-arrows lint-python lint-words lint-lengths lint-format lint-symbols ## include arrows, Python, words, lengths, format, exported names

lint-arrows:
	@echo "  LINT    include arrows"
	$(Q)awk -f tests/lint/arrows.awk $(C_FILES)
lint-python:
	@echo "  LINT    Python"
	$(Q)python3 -c 'import ast, sys; [ast.parse(open(name, encoding="utf-8").read(), name) for name in sys.argv[1:]]' $$(git ls-files -- '*.py')
lint-words:
	@echo "  LINT    words"
	$(Q)tests/lint/words.sh
	$(Q)tests/lint/faults.sh
	$(Q)python3 tests/sim/planted.py --places
lint-lengths:
	@echo "  LINT    lengths"
	$(Q)awk -f tests/lint/lengths.awk $(filter-out tests/% runtime/trainyard.h,$(C_FILES))
lint-format:
	@echo "  LINT    format"
	$(Q)clang-format-14 --dry-run --Werror $(C_FILES)
lint-symbols: $(PROGRAMS)
	@echo "  LINT    exported names"
	$(Q)nm -A -g --defined-only $(call objects,$(BASE) $(PROTO) $(RUNTIME) $(KERNELS) $(DB) $(SCHEDULER) $(SERVER) $(CLI) $(TASK) $(CAPI)) | \
	  awk 'NF == 3 {sub(/:[0-9a-f]*$$/, "", $$1); print $$1, $$3}' | awk -f tests/lint/symbols.awk

format: ## format all C files
	$(Q)clang-format-14 -i $(C_FILES)

SYSTEM := $(wildcard tests/system/*_test.sh)
# They mostly wait.
AT_ONCE ?= 3
TIMEOUT ?= 300
.PHONY: system slow-system test-gpu test interop fuzz fuzz-build fuzz-check check totals
system: all slow ## system tests: real processes (T=part of a name, KILLS=N, SEED=N, TIMEOUT=seconds for each)
	$(Q)TRAINYARD_BUILD=$(BUILD) tests/run.sh --timeout $(TIMEOUT) --at-once $(AT_ONCE) $(foreach t,$(SYSTEM),$(if $(T),$(if $(findstring $(T),$(t)),$(t)),$(t)))

# That of packages builds its own programs, over those on a slow disk.
slow-system: all slow ## system tests on a slow disk (SLOW_DISK_MS=150, and as system)
	$(Q)TRAINYARD_BUILD=$(BUILD)/slow tests/run.sh --timeout $(TIMEOUT) --at-once $(AT_ONCE) $(foreach t,$(filter-out %/package_test.sh,$(SYSTEM)),$(if $(T),$(if $(findstring $(T),$(t)),$(t)),$(t)))

.PHONY: cases
cases: $(BUILD)/tf-cases $(BUILD)/tf-sessions $(BUILD)/keras-vectors $(BUILD)/saved-models ## TensorFlow's and Keras's recorded answers, where the recordings are
	$(Q)TRAINYARD_BUILD=$(BUILD) tests/run.sh --timeout 600 tests/interop/cases_test.sh

.PHONY: browser
browser: all build/web/stamp ## browser tests (Debian's Chromium)
	$(Q)TRAINYARD_BUILD=$(BUILD) tests/run.sh --timeout 900 tests/web/*_test.sh

interop: all $(BUILD)/tf-read $(BUILD)/tf-write $(BUILD)/onnx-write $(BUILD)/kernel-types ## files and checkpoints against TensorFlow itself
	$(Q)BUILD=$(BUILD) tests/run.sh --timeout 1200 tests/interop/interop.sh

# Fuzz targets are built by clang with libFuzzer in a folder of their own.
FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_ENGINE := $(patsubst %,$(OBJ)/scheduler/engines/%.o,settings slurm command kubernetes_pod)
FUZZ_LIBS := $(OBJ)/tests/fuzz/mutate.o $(OBJ)/server/url.o $(FUZZ_ENGINE) $(LIBS_RUNTIME)
# These have the server's code inside.
FUZZ_SERVER := $(addprefix $(BUILD)/,fuzz_http fuzz_websocket fuzz_filter fuzz_certify)
fuzz_make = $(MAKE) --no-print-directory CC=clang-14 SAN=fuzz BUILD=build/fuzz

$(FUZZ_SERVER): $(BUILD)/%: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/yard.o $(LIBS_CONTROL)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< $(OBJ)/tests/fuzz/yard.o -Wl,--start-group $(LIBS_CONTROL) -Wl,--end-group $(LINK_CONTROL)

$(filter-out $(FUZZ_SERVER),$(addprefix $(BUILD)/,$(FUZZ_TARGETS))): $(BUILD)/%: $(OBJ)/tests/fuzz/%.o $(FUZZ_LIBS)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(FUZZ_LIBS) -Wl,--end-group $(LINK_RUNTIME)

fuzz: ## one fuzz target (F=name S=seconds or RUNS=inputs), or all
	$(Q)$(fuzz_make) $(addprefix build/fuzz/,$(if $(F),fuzz_$(F),$(FUZZ_TARGETS)))
	$(Q)BUILD=build/fuzz S=$(S) RUNS=$(RUNS) F=$(F) tests/fuzz/check.sh

fuzz-objects: $(call objects,$(wildcard tests/fuzz/*.c)) # for the compiler's words alone, long before they are built to run

fuzz-build:
	$(Q)$(fuzz_make) -j$(JOBS) $(addprefix build/fuzz/,$(FUZZ_TARGETS))

fuzz-check: fuzz-build # all fuzz targets, the same 20,000 inputs every time, 10 s at most: new ways are for fuzz and prove
	$(Q)BUILD=build/fuzz SEED=1 RUNS=20000 S=10 tests/run.sh --timeout 900 tests/fuzz/check.sh

test-gpu: all ## tests on the GPUs of this machine (left out where it has none), with what they took
	$(Q)TRAINYARD_BUILD=$(BUILD) tests/system/real_gpu_test.sh

test: unit system ## all tests of one build (SAN=address|thread, T=name)

# Everything CI runs, in order, with one line of totals at the end.
TOTALS := build/check.totals
CHECK = TEST_TOTALS=$(CURDIR)/$(TOTALS) $(MAKE) --no-print-directory
JOBS ?= $(shell nproc)
# clang is there for its warnings.  What compares with TensorFlow keeps one core busy; the other builds and
# runs the fuzz targets meanwhile.
check: ## lint, gcc and clang, tests, sanitizers, fuzz, simulator, browser, interop
	@rm -f $(TOTALS); mkdir -p build
	$(Q)$(CHECK) -j$(JOBS) all
	$(Q)$(CHECK) lint
	$(Q)$(CHECK) -j$(JOBS) unit
	$(Q)$(CHECK) -j$(JOBS) CC=clang-14 OPT=-O0 all fuzz-objects
	$(Q)$(CHECK) -j$(JOBS) SAN=address unit
	$(Q)$(CHECK) sim-check
	$(Q)$(CHECK) system
	$(Q)$(CHECK) browser
	$(Q)$(CHECK) cases
	$(Q){ nice env $(CHECK) fuzz-build && nice env $(CHECK) fuzz-check; } & beside=$$!; $(CHECK) interop; said=$$?; wait $$beside && exit $$said
	$(Q)awk '{p += $$1; f += $$2; s += $$3} END {print p " passed, " f " failed, " s " skipped"; exit f > 0}' $(TOTALS)

# --- the simulator: the scheduler in thousands of worlds full of faults ----------------------

$(BUILD)/sim: $(call objects,$(wildcard tests/sim/*.c) server/partials.c proto/agent_words.c) $(BUILD)/libscheduler.a $(BUILD)/libdb.a $(BUILD)/libbase.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -ljansson -lsqlite3 -lsodium -lm -lpthread

.PHONY: sim sim-check
sim: $(BUILD)/sim ## simulator (build/sim --seeds N | --seconds T | --seed S --trace)
sim-check: sim
	$(Q)TRAINYARD_BUILD=$(BUILD) tests/run.sh --timeout 60 tests/sim/check.sh

# --- packages ------------------------------------------------------------------------------

DEPS := build-essential pkg-config clang-14 clang-format-14 libclang-rt-14-dev libcmocka-dev \
        libnghttp2-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler libmicrohttpd-dev libwebsockets-dev libsqlite3-dev \
        libucx-dev libjansson-dev libsodium-dev libssl-dev libgnutls28-dev libcurl4-openssl-dev zlib1g-dev \
        libdnnl-dev libpng-dev libjpeg62-turbo-dev libicu-dev libzip-dev libhdf5-dev libaec-dev openssl ca-certificates curl sqlite3 \
        git procps python3 python3-venv chromium

.PHONY: deps
deps: ## install the Debian packages that are missing
	@missing=""; for p in $(DEPS); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	command -v node >/dev/null || missing="$$missing nodejs"; command -v npm >/dev/null || missing="$$missing npm"; \
	if [ -z "$$missing" ]; then echo "deps: all $(words $(DEPS)) packages are there"; exit 0; fi; \
	as=""; [ $$(id -u) = 0 ] || as=sudo; \
	if [ -n "$$as" ] && ! command -v sudo >/dev/null; then echo "deps: as root, run: apt-get install$$missing"; exit 1; fi; \
	echo "deps: installing$$missing"; \
	$$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null && echo "deps: done"

SLURM := slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
.PHONY: deps-slurm
deps-slurm: ## install the Slurm that a system test runs (without it the test is left out)
	@$(MAKE) --no-print-directory DEPS="$(SLURM)" deps

# --- installing ----------------------------------------------------------------------------

.PHONY: prove
prove: all ## the full counts, part by part, resumable; results go to docs/proof.md
	$(Q)tests/prove.sh

.PHONY: install install-library
install: all install-library ## install under PREFIX (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/doc/trainyard $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	  $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 README.md LICENSE docs/*.md deploy/grafana/trainyard.json $(DESTDIR)$(PREFIX)/share/doc/trainyard
	$(BUILD)/trainyard completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/trainyard
	$(BUILD)/trainyard completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_trainyard
	$(BUILD)/trainyard completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/trainyard.fish
	$(BUILD)/trainyard man | gzip -9n > $(DESTDIR)$(PREFIX)/share/man/man1/trainyard.1.gz

install-library: $(LIBRARY) # the C API alone
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/runtime
	install -m 755 $(LIBRARY) $(DESTDIR)$(PREFIX)/lib
	ln -sf $(notdir $(LIBRARY)) $(DESTDIR)$(PREFIX)/lib/libtrainyard.so
	install -m 644 runtime/trainyard.h $(DESTDIR)$(PREFIX)/include/runtime
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' runtime/trainyard.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/trainyard.pc

.PHONY: deb
deb: all ## a Debian package, in build/
	$(Q)deploy/debian/build.sh $(BUILD) $(VERSION)

.PHONY: wheel
wheel: ## the Python client as a wheel, in build/
	$(Q)rm -rf $(BUILD)/wheel && mkdir -p $(BUILD)/wheel && cp -r python $(BUILD)/wheel/source && python3 -m venv $(BUILD)/wheel/venv
	$(Q)$(BUILD)/wheel/venv/bin/pip -q wheel --no-deps -w $(BUILD) $(BUILD)/wheel/source && ls $(BUILD)/trainyard-*.whl

.PHONY: demo
demo: ## install packages, build, start, train a network, print the link
	$(Q)$(MAKE) --no-print-directory deps
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all
	$(Q)$(BUILD)/trainyard demo

.PHONY: bench
bench: all $(BUILD)/bench/cases $(BUILD)/bench/input $(BUILD)/bench/executor $(BUILD)/bench/load $(BUILD)/bench/live $(BUILD)/bench/points $(BUILD)/bench/queue $(BUILD)/bench/trace ## training speed of the benchmark's cases (CASES= THREADS= ROUNDS= PEERS=folder)
	$(Q)tests/bench/run.sh $(BUILD)
	$(Q)$(BUILD)/bench/input $(BUILD)/bench
	$(Q)python3 tests/bench/executor.py $(BUILD) $(PEERS)
	$(Q)python3 tests/bench/cluster/main.py $(BUILD) $(PEERS)
	$(Q)python3 tests/bench/allreduce.py $(BUILD) $(PEERS)
	$(Q)python3 tests/bench/platform.py $(BUILD)
	$(Q)$(BUILD)/bench/queue
	$(Q)$(BUILD)/bench/trace 1000 10000

.PHONY: clean
clean: ## remove all that was built
	rm -rf build

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

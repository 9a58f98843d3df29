// SPDX-License-Identifier: MIT
/*
 * proc_cpuinfo.c - /proc/cpuinfo: a block for each online CPU.
 *
 * Blocks come from the recording (that CPU's own one where it has it), else from the host when it
 * is of the machine's architecture, else from a plain one here. What follows from the topology is
 * written into each: number, package, core, how many of them, and the APIC id of a CPU that has no
 * block of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include "impl.h"

static const char x86_block[] =
	"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
	"model name\t: Emulated x86-64 processor\nstepping\t: 8\nmicrocode\t: 0x1\ncpu MHz\t\t: "
	"2000.000\n"
	"cache size\t: 32768 KB\nphysical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: "
	"1\napicid\t\t: 0\n"
	"initial apicid\t: 0\nfpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: 31\nwp\t\t: yes\n"
	"flags\t\t: fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 "
	"clflush mmx fxsr sse sse2 ss "
	"ht syscall nx pdpe1gb rdtscp lm constant_tsc rep_good nopl xtopology cpuid pni ssse3 cx16 "
	"sse4_1 sse4_2 popcnt\n"
	"bugs\t\t:\nbogomips\t: 4000.00\nclflush size\t: 64\ncache_alignment\t: 64\n"
	"address sizes\t: 52 bits physical, 57 bits virtual\npower management:\n\n";

static const char arm64_block[] = "processor\t: 0\nBogoMIPS\t: 50.00\n"
				  "Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics "
				  "fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp\n"
				  "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: "
				  "0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n";

static const char ppc64_block[] =
	"processor\t: 0\ncpu\t\t: POWER10 (architected), altivec supported\nclock\t\t: "
	"3900.000000MHz\n"
	"revision\t: 2.0 (pvr 0080 0200)\n\ntimebase\t: 512000000\nplatform\t: pSeries\n"
	"model\t\t: IBM pSeries (emulated by qemu)\nmachine\t\t: CHRP IBM pSeries (emulated by "
	"qemu)\nMMU\t\t: Radix\n";

struct block {
	const char *text;
	size_t len; /* without the empty line */
	unsigned int cpu;
};

struct blocks {
	struct block *block;
	size_t nr;
	const char *tail; /* what follows the last block: POWER's lines on the machine */
	size_t tail_len;
	bool own; /* a block with a CPU's number is that very CPU's */
};

/* Facts about a CPU that its block tells. */
struct facts {
	unsigned int cpu, package, siblings, core, cores, apicid;
	bool apic; /* write the APIC ids */
};

/* One more than what 2^bits values need. */
static unsigned int bits_for(unsigned int values)
{
	unsigned int bits = 0;

	while (bits < 31 && 1u << bits < values)
		bits++;
	return bits;
}

static int split(const char *text, size_t len, struct blocks *blocks)
{
	const char *end = text + len, *stop;
	struct block *grown;
	size_t size;

	while (text < end) {
		stop = memmem(text, (size_t)(end - text), "\n\n", 2);
		size = (size_t)((stop ? stop + 1 : end) - text);
		if (size < 9 || memcmp(text, "processor", 9)) {
			blocks->tail = text;
			blocks->tail_len = (size_t)(end - text);
			return 0;
		}
		if (!(blocks->nr & (blocks->nr + 1))) {
			grown = reallocarray(blocks->block, 2 * blocks->nr + 2, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			blocks->block = grown;
		}
		stop = memchr(text, ':', size);
		blocks->block[blocks->nr].text = text;
		blocks->block[blocks->nr].len = size;
		blocks->block[blocks->nr].cpu =
			stop ? (unsigned int)strtoul(stop + 1, NULL, 10) : 0;
		blocks->nr++;
		text += size + 1;
	}
	return 0;
}

/* Blocks are in order of the CPUs' numbers. */
static const struct block *block_of(const struct blocks *blocks, unsigned int cpu, bool *own)
{
	size_t low = 0, high = blocks->nr;

	*own = false;
	while (blocks->own && low < high) {
		size_t mid = low + (high - low) / 2;

		if (blocks->block[mid].cpu == cpu) {
			*own = true;
			return &blocks->block[mid];
		}
		if (blocks->block[mid].cpu < cpu)
			low = mid + 1;
		else
			high = mid;
	}
	return &blocks->block[cpu % blocks->nr];
}

static bool is(const char *line, size_t len, const char *key)
{
	size_t n = strlen(key);

	return len > n && !memcmp(line, key, n) &&
	       (line[n] == '\t' || line[n] == ' ' || line[n] == ':');
}

static void put_block(struct mc_text *out, const struct block *block, const struct facts *facts)
{
	const char *line = block->text, *end = block->text + block->len, *stop, *colon;
	size_t len;

	for (; line < end; line += len + 1) {
		unsigned int value = 0;
		bool known = true;

		stop = memchr(line, '\n', (size_t)(end - line));
		len = (size_t)((stop ? stop : end) - line);
		if (is(line, len, "processor"))
			value = facts->cpu;
		else if (is(line, len, "physical id"))
			value = facts->package;
		else if (is(line, len, "siblings"))
			value = facts->siblings;
		else if (is(line, len, "core id"))
			value = facts->core;
		else if (is(line, len, "cpu cores"))
			value = facts->cores;
		else if (facts->apic &&
			 (is(line, len, "apicid") || is(line, len, "initial apicid")))
			value = facts->apicid;
		else
			known = false;
		colon = memchr(line, ':', len);
		if (known && colon) {
			mc_text_add(out, line, (size_t)(colon - line));
			mc_text_printf(out, ": %u\n", value);
		} else {
			mc_text_add(out, line, len);
			mc_text_add(out, "\n", 1);
		}
	}
	mc_text_add(out, "\n", 1);
}

/* Cores of the CPU's package that have an online CPU. */
static unsigned int count_cores(const struct mc_topology *topo, const struct mc_cpumask *package)
{
	unsigned int cpu, cores = 0;
	const struct mc_cpumask *core;

	mc_for_each_cpu (cpu, package) {
		core = mc_topology_siblings(topo, cpu, MC_LEVEL_CORE);
		cores += !core || mc_cpumask_first(core) == cpu;
	}
	return cores;
}

static void put_all(const struct rn_at *at, const struct blocks *blocks, struct mc_text *out)
{
	const struct mc_cpumask *online = mc_topology_online(at->topo), *package, *last = NULL;
	unsigned int cpu, threads = 1, cores = 1, n;
	struct facts facts = {0};
	bool own;

	mc_for_each_cpu (cpu, online) {
		const struct mc_cpu *ids = mc_topology_cpu(at->topo, cpu);

		if (ids->thread >= 0 && (unsigned int)ids->thread >= threads)
			threads = (unsigned int)ids->thread + 1;
		if (ids->core_id >= 0 && (unsigned int)ids->core_id >= cores)
			cores = (unsigned int)ids->core_id + 1;
	}
	mc_for_each_cpu (cpu, online) {
		const struct block *block = block_of(blocks, cpu, &own);
		const struct mc_cpu *ids = mc_topology_cpu(at->topo, cpu);

		package = mc_topology_siblings(at->topo, cpu, MC_LEVEL_PACKAGE);
		if (package && package != last) {
			facts.siblings = mc_cpumask_weight(package);
			facts.cores = count_cores(at->topo, package);
			last = package;
		}
		facts.cpu = cpu;
		facts.package = ids->package_id < 0 ? 0 : (unsigned int)ids->package_id;
		facts.core = ids->core_id < 0 ? 0 : (unsigned int)ids->core_id;
		facts.apic = !own;
		n = facts.package << bits_for(cores) | facts.core;
		facts.apicid =
			n << bits_for(threads) | (ids->thread < 0 ? 0 : (unsigned int)ids->thread);
		put_block(out, block, &facts);
	}
	mc_text_add(out, blocks->tail, blocks->tail_len);
}

int rn_proc_cpuinfo(const struct rn_at *at, const struct rn_entry *entry, struct mc_text *out)
{
	struct blocks blocks = {0};
	char *host = NULL;
	const char *text;
	size_t len = 0;
	int ret;

	(void)entry;
	text = rn_live(at->render)->derived_only
		       ? NULL
		       : mc_topology_file(at->topo, "/proc/cpuinfo", &len);
	blocks.own = text;
	if (!text && at->view->host_source && rn_host_read("/proc/cpuinfo", &host, &len) >= 0 &&
	    len)
		text = host;
	if (!text) {
		text = at->view->arch == MC_ARCH_X86_64    ? x86_block
		       : at->view->arch == MC_ARCH_AARCH64 ? arm64_block
		       : at->view->arch == MC_ARCH_PPC64   ? ppc64_block
							   : "processor\t: 0\n\n";
		len = strlen(text);
	}
	ret = split(text, len, &blocks);
	if (!ret && !blocks.nr)
		mc_text_add(out, text, len); /* none that we know: as it is */
	else if (!ret)
		put_all(at, &blocks, out);
	free(blocks.block);
	free(host);
	return ret;
}

// SPDX-License-Identifier: MIT
/*
 * test_topology.c - machines from descriptions, presets and recordings: QEMU's rules for what is
 * left out, nodes and distances, hot-plug, fallback order; and recordings that are cut, lie, or try
 * to lead out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/topology_files.h"
#include "lib/topology_read.h"
#include "scratch.h"

static const char *list_of(const struct mc_cpumask *mask)
{
	static char text[4][512];
	static unsigned int turn;
	char *to = text[turn++ % 4];

	mc_cpulist_snprint(to, sizeof(text[0]), mask);
	return to;
}

/* Options in pairs, ended by NULL. */
static int vbuild(struct mc_topology **topo, struct mc_error *error, va_list ap)
{
	struct mc_machine *m = mc_machine_new();
	const char *name;
	int rc = 0;

	while (rc == 0 && (name = va_arg(ap, const char *)) != NULL)
		rc = mc_machine_option(m, name, va_arg(ap, const char *), error);
	if (rc == 0)
		rc = mc_machine_build(m, topo, error);
	mc_machine_free(m);
	return rc;
}

static struct mc_topology *build(const char *unused, ...)
{
	struct mc_topology *topo = NULL;
	struct mc_error error = { 0 };
	va_list ap;

	(void)unused;
	va_start(ap, unused);
	if (vbuild(&topo, &error, ap) < 0)
		fail_msg("%s", error.text);
	va_end(ap);
	return topo;
}

static void refused(int expect, const char *text, ...)
{
	struct mc_topology *topo = NULL;
	struct mc_error error = { 0 };
	va_list ap;
	int rc;

	va_start(ap, text);
	rc = vbuild(&topo, &error, ap);
	va_end(ap);
	if (rc != expect || !strstr(error.text, text))
		fail_msg("%d: %s (expected %d, %s)", rc, error.text, expect, text);
	assert_int_equal(error.err, -expect);
	assert_null(topo);
}

/* ---- descriptions ---------------------------------------------------------------------------- */

static void test_main_job(void **state)
{
	struct mc_topology *t = build("", "smp", "512,sockets=2,cores=128,threads=2", "nodes", "8", "mem", "1T", NULL);

	(void)state;
	assert_int_equal(mc_topology_nr_cpu_ids(t), 512);
	assert_int_equal(mc_topology_nr_node_ids(t), 8);
	for (unsigned int i = 0; i < 8; i++) {
		assert_true(mc_topology_node(t, i)->mem_total == 128ull << 30);
		assert_int_equal(mc_cpumask_weight(mc_topology_node(t, i)->cpus), 64);
		for (unsigned int j = 0; j < 8; j++)
			assert_int_equal(mc_topology_distance(t, i, j), i == j ? 10 : 20);
	}
	assert_string_equal(list_of(mc_topology_node(t, 3)->cpus), "192-255");
	assert_string_equal(list_of(mc_topology_siblings(t, 77, MC_LEVEL_CORE)), "76-77");
	assert_string_equal(list_of(mc_topology_siblings(t, 300, MC_LEVEL_PACKAGE)), "256-511");
	assert_int_equal(mc_topology_cpu(t, 300)->node, 4);
	assert_int_equal(mc_topology_cpu(t, 301)->thread, 1);
	assert_true(mc_topology_mem_total(t) == 1ull << 40);
	assert_null(mc_topology_node(t, 8));
	assert_null(mc_topology_cpu(t, 512));
	mc_topology_put(t);
}

/* What QEMU 6.2 and later make of these -smp values. */
static void test_smp(void **state)
{
	static const struct {
		const char *text;
		unsigned int present, possible, package, core;
	} cases[] = {
		{ "8", 8, 8, 8, 1 },
		{ "cpus=8", 8, 8, 8, 1 },
		{ "8,sockets=2", 8, 8, 4, 1 },
		{ "8,cores=2", 8, 8, 2, 1 },
		{ "8,threads=2", 8, 8, 8, 2 },
		{ "8,sockets=2,cores=2", 8, 8, 4, 2 },
		{ "4,maxcpus=16,sockets=4", 4, 16, 4, 1 },
		{ "sockets=2,cores=3,threads=2", 12, 12, 6, 2 },
		{ "maxcpus=6", 6, 6, 6, 1 },
		{ "0x10,sockets=2,dies=2,clusters=2", 16, 16, 8, 1 },
	};

	(void)state;
	for (size_t i = 0; i < MC_ARRAY_SIZE(cases); i++) {
		struct mc_topology *t = build("", "smp", cases[i].text, "mem", "1G", NULL);

		assert_int_equal(mc_cpumask_weight(mc_topology_present(t)), cases[i].present);
		assert_int_equal(mc_cpumask_weight(mc_topology_possible(t)), cases[i].possible);
		assert_int_equal(mc_cpumask_weight(mc_topology_siblings(t, 0, MC_LEVEL_PACKAGE)),
				 cases[i].package);
		assert_int_equal(mc_cpumask_weight(mc_topology_siblings(t, 0, MC_LEVEL_CORE)),
				 cases[i].core);
		mc_topology_put(t);
	}
	refused(-EINVAL, "greater than zero", "smp", "8,cores=0", NULL);
	refused(-EINVAL, "is not cpus (8)", "smp", "8,sockets=3", NULL);
	refused(-EINVAL, "is not maxcpus (9)", "smp", "8,sockets=2,maxcpus=9", NULL);
	refused(-EINVAL, "more than maxcpus=4", "smp", "8,maxcpus=4", NULL);
	refused(-EINVAL, "unknown word", "smp", "8,books=2", NULL);
	refused(-EINVAL, "expected a number", "smp", "8,cores=x", NULL);
	refused(-ERANGE, "too large", "smp", "70000", NULL);
	refused(-ERANGE, "too large", "smp", "99999999999999999999999", NULL);
	refused(-ERANGE, "more than 65536 CPUs", "smp", "sockets=65536,cores=65536", NULL);
}

static void test_nodes(void **state)
{
	struct mc_topology *t;

	(void)state;
	t = build("", "smp", "8", "numa", "node,cpus=0-1,cpus=4-5,mem=1G", "numa", "node,nodeid=3,cpus=2-3,6,7", "numa",
		  "node,nodeid=1,mem=4G", "numa", "dist,src=0,dst=1,val=17", "numa", "dist,src=1,dst=0,val=18", "numa",
		  "dist,src=3,dst=0,val=33", NULL);
	assert_string_equal(list_of(&mc_topology_nodes_online(t)->m), "0-1,3");
	assert_string_equal(list_of(mc_topology_node(t, 0)->cpus), "0-1,4-5");
	assert_string_equal(list_of(mc_topology_node(t, 3)->cpus), "2-3,6-7");
	assert_string_equal(list_of(&mc_topology_nodes_has_cpu(t)->m), "0,3");
	assert_string_equal(list_of(&mc_topology_nodes_has_memory(t)->m), "0-1");
	assert_int_equal(mc_topology_distance(t, 0, 1), 17);
	assert_int_equal(mc_topology_distance(t, 1, 0), 18);
	assert_int_equal(mc_topology_distance(t, 0, 3), 33);
	assert_int_equal(mc_topology_distance(t, 3, 1), 20);
	assert_int_equal(mc_topology_distance(t, 0, 2), 0);
	assert_true(mc_topology_node(t, 1)->mem_total == 4ull << 30);
	assert_true(mc_topology_mem_total(t) == 5ull << 30);
	mc_topology_put(t);

	refused(-EINVAL, "belongs to another node", "smp", "4", "numa", "node,cpus=0-2,mem=1G",
		"numa", "node,cpus=2,mem=1G", NULL);
	refused(-ERANGE, "CPU 4: the machine has CPUs 0-3", "smp", "4", "numa", "node,cpus=0-4,mem=1G", NULL);
	refused(-EINVAL, "neither CPUs nor memory", "smp", "4", "numa", "node,cpus=0-3,mem=1G",
		"numa", "node,mem=0", NULL);
	refused(-EINVAL, "no node 7", "smp", "4", "nodes", "2", "mem", "1G", "numa", "dist,src=0,dst=7,val=20", NULL);
	refused(-EINVAL, "add up to", "smp", "4", "mem", "1G", "numa", "node,cpus=0-3,mem=2G", NULL);
	refused(-EINVAL, "described before", "numa", "node,nodeid=1,mem=1G", "numa", "node,nodeid=1,mem=1G", NULL);
	refused(-ERANGE, "from 10 to 255", "numa", "dist,src=0,dst=1,val=9", NULL);
	refused(-ERANGE, "too large", "numa", "node,nodeid=4294967295", NULL);
	refused(-EINVAL, "multiple of 4 KiB", "mem", "1000B", NULL);
	refused(-ERANGE, "at most 1E", "mem", "99999999999E", NULL);
	refused(-ENOENT, "no preset", "machine", "pdp11", NULL);
	refused(-ENOENT, "No such file", "machine", "./no/such/machine", NULL);
	refused(-ERANGE, "CPU 4: the machine has CPUs 0-3", "smp", "4", "offline", "4", NULL);
	refused(-EINVAL, "no CPU would be left", "smp", "4", "offline", "0-3", NULL);
}

/* Node 2 is left with nothing when its CPUs go; what they showed goes with them. */
static void test_online(void **state)
{
	struct mc_topology *t = build("", "smp", "16,sockets=2,threads=2", "nodes", "4", "mem",
				      "4G", "offline", "8-11,3", NULL),
			   *back;

	(void)state;
	assert_string_equal(list_of(mc_topology_online(t)), "0-2,4-7,12-15");
	assert_string_equal(list_of(mc_topology_present(t)), "0-15");
	assert_string_equal(list_of(&mc_topology_nodes_has_cpu(t)->m), "0-1,3");
	assert_string_equal(list_of(&mc_topology_nodes_online(t)->m), "0-3");
	assert_true(mc_cpumask_empty(mc_topology_node(t, 2)->cpus));
	assert_string_equal(list_of(mc_topology_node(t, 2)->linked), "8-11");
	assert_string_equal(list_of(mc_topology_siblings(t, 2, MC_LEVEL_CORE)), "2");
	assert_string_equal(list_of(mc_topology_siblings(t, 2, MC_LEVEL_PACKAGE)), "0-2,4-7");
	assert_null(mc_topology_siblings(t, 3, MC_LEVEL_CORE));
	assert_null(mc_topology_cache(t, 3, 0));
	assert_int_equal(mc_topology_cpu(t, 3)->core_id, -1);
	assert_int_equal(mc_topology_cpu(t, 3)->node, 0);
	assert_int_equal(mc_topology_set_online(t, mc_topology_present(t), &back), 0);
	assert_string_equal(list_of(mc_topology_siblings(back, 2, MC_LEVEL_CORE)), "2-3");
	assert_string_equal(list_of(&mc_topology_nodes_has_cpu(back)->m), "0-3");
	mc_topology_put(t);
	assert_int_equal(mc_topology_cpu(back, 9)->node, 2); /* shares what `t` held */
	mc_topology_put(back);
}

static void test_presets(void **state)
{
	const char *name;
	struct mc_topology *t;

	(void)state;
	for (unsigned int i = 0; (name = mc_machine_preset(i, NULL)) != NULL; i++) {
		t = build("", "machine", name, NULL);
		assert_true(mc_topology_mem_total(t) >= 8ull << 30);
		assert_non_null(mc_topology_cache(t, 0, 0));
		mc_topology_put(t);
	}
	t = build("", "machine", "power-smt8", NULL);
	assert_string_equal(list_of(&mc_topology_nodes_online(t)->m), "0,8,16,24");
	assert_string_equal(list_of(mc_topology_siblings(t, 9, MC_LEVEL_CORE)), "8-15");
	mc_topology_put(t);
	t = build("", "machine", "epyc-2x96-nps4", NULL);
	assert_string_equal(list_of(mc_topology_node(t, 1)->cpus), "24-47,216-239");
	assert_int_equal(mc_topology_distance(t, 0, 1), 12);
	assert_int_equal(mc_topology_distance(t, 0, 4), 32);
	assert_string_equal(list_of(mc_topology_cache(t, 0, 3)->shared), "0-7,192-199");
	mc_topology_put(t);
	t = build("", "machine", "spr-2x56-snc4-cxl", NULL);
	assert_true(mc_cpumask_empty(mc_topology_node(t, 8)->cpus));
	assert_true(mc_topology_node(t, 8)->mem_total == 256ull << 30);
	mc_topology_put(t);
	t = build("", "machine", "limit-8192x1024", NULL);
	assert_int_equal(mc_topology_nr_cpu_ids(t), 8192);
	assert_int_equal(mc_topology_fallback(t, 1023, NULL, 0), 1024);
	mc_topology_put(t);
	t = build("", "smp", "65536,sockets=16,threads=8", "nodes", "64", "mem", "64G", NULL);
	assert_int_equal(mc_topology_cpu(t, 65535)->node, 63);
	mc_topology_put(t);
	refused(-ERANGE, "more than 512 MiB", "smp", "65536", NULL);
}

/* ---- recordings ------------------------------------------------------------------------------ */

static struct mc_topology *load(const char *name)
{
	struct mc_topology *topo = NULL;
	struct mc_error error = { 0 };
	char path[512];

	snprintf(path, sizeof(path), MACHINES "/%s.tgz", name);
	if (mc_topology_load(path, &topo, &error) < 0)
		fail_msg("%s", error.text);
	return topo;
}

static const char *const recordings[] = {
	"arm64-612-64-4n",    "arm64-612-8-2n",      "arm64-612own-fake4", "x86-61-4of160",
	"x86-612-2n16",       "x86-612-64",          "x86-612-fake2G",     "x86-612-fake4",
	"x86-612-fake4-dist", "x86-612-fake8-2phys", "x86-612-memonly",    "x86-612-numaoff",
	"x86-612-offline",    "x86-612-own4n-hmat",  "x86-612-single",
};

/* The lists of the sources' own files, as text. */
static void same_as_file(const struct mc_topology *topo, const struct mc_cpumask *mask,
			 const char *path)
{
	size_t len;
	const char *text = mc_topology_file(topo, path, &len);
	const char *own = list_of(mask);

	assert_non_null(text);
	while (len && text[len - 1] == '\n')
		len--;
	if (strlen(own) != len || memcmp(own, text, len))
		fail_msg("%s: '%s' is not '%.*s'", path, own, (int)len, text);
}

static void test_recordings(void **state)
{
	(void)state;
	for (size_t i = 0; i < MC_ARRAY_SIZE(recordings); i++) {
		struct mc_topology *t = load(recordings[i]);
		unsigned int cpu, id;
		char path[128];

		print_message("%s\n", recordings[i]);
		assert_int_equal(mc_topology_arch(t),
				 *recordings[i] == 'a' ? MC_ARCH_AARCH64 : MC_ARCH_X86_64);
		same_as_file(t, mc_topology_possible(t), "/sys/devices/system/cpu/possible");
		same_as_file(t, mc_topology_present(t), "/sys/devices/system/cpu/present");
		same_as_file(t, mc_topology_online(t), "/sys/devices/system/cpu/online");
		same_as_file(t, &mc_topology_nodes_has_cpu(t)->m, "/sys/devices/system/node/has_cpu");
		same_as_file(t, &mc_topology_nodes_has_memory(t)->m, "/sys/devices/system/node/has_memory");
		mc_for_each_cpu(cpu, mc_topology_online(t)) {
			snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/package_cpus_list", cpu);
			same_as_file(t, mc_topology_siblings(t, cpu, MC_LEVEL_PACKAGE), path);
			snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cache/index2/shared_cpu_list", cpu);
			if (mc_topology_cache(t, cpu, 2))
				same_as_file(t, mc_topology_cache(t, cpu, 2)->shared, path);
		}
		mc_for_each_cpu(id, &mc_topology_nodes_online(t)->m) {
			snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", id);
			same_as_file(t, mc_topology_node(t, id)->cpus, path);
			assert_true(mc_topology_node(t, id)->nr_ranges > 0);
		}
		mc_topology_put(t);
	}
}

static void test_recorded_facts(void **state)
{
	struct mc_topology *t = load("x86-61-4of160");
	unsigned int order[8];

	(void)state;
	assert_int_equal(mc_topology_nr_cpu_ids(t), 160);
	assert_int_equal(mc_topology_kernel_max(t), 8191);
	mc_topology_put(t);
	t = load("arm64-612-8-2n");
	assert_int_equal(mc_topology_max_numnodes(t), 16);
	assert_int_equal(mc_topology_cpu(t, 5)->cluster_id, 0);
	assert_int_equal(mc_topology_cpu(t, 5)->die_id, -1);
	assert_null(mc_topology_siblings(t, 5, MC_LEVEL_DIE));
	mc_topology_put(t);
	t = load("x86-612-offline");
	assert_int_equal(mc_topology_cpu(t, 8)->node, 1);
	assert_string_equal(list_of(mc_topology_node(t, 1)->linked), "8-15");
	mc_topology_put(t);
	/* dmesg of that boot: "Fallback order for Node 3: 3 5 7 1 4 6 0 2" */
	t = load("x86-612-fake8-2phys");
	assert_int_equal(mc_topology_fallback(t, 3, order, 8), 8);
	assert_memory_equal(order, ((unsigned int[]){ 3, 5, 7, 1, 4, 6, 0, 2 }), sizeof(order));
	mc_topology_put(t);
	t = load("x86-612-memonly");
	assert_int_equal(mc_topology_fallback(t, 1, order, 8), 3);
	assert_memory_equal(order, ((unsigned int[]){ 1, 0, 2 }), 3 * sizeof(*order));
	mc_topology_put(t);
	t = load("x86-612-own4n-hmat"); /* distances 10 16 32 17 from node 0 */
	assert_int_equal(mc_topology_fallback(t, 0, order, 8), 4);
	assert_memory_equal(order, ((unsigned int[]){ 0, 1, 3, 2 }), 4 * sizeof(*order));
	mc_topology_put(t);
	t = load("x86-612-fake4-dist");
	assert_int_equal(mc_topology_fallback(t, 3, order, 8), 4);
	assert_memory_equal(order, ((unsigned int[]){ 3, 2, 1, 0 }), 4 * sizeof(*order));
	mc_topology_put(t);
}

/* ---- hostile archives ------------------------------------------------------------------------ */

struct member {
	const char *path, *data; /* data "->X": a link to X, "=X": a hard link, NULL: a folder */
	uint64_t size;           /* of a hole, with data "" */
};

static size_t make_tar(char *buf, size_t room, const struct member *m)
{
	struct archive *a = archive_write_new();
	size_t used = 0;

	archive_write_set_format_pax_restricted(a);
	archive_write_open_memory(a, buf, room, &used);
	for (; m->path; m++) {
		struct archive_entry *e = archive_entry_new();

		archive_entry_set_pathname(e, m->path);
		archive_entry_set_perm(e, 0644);
		archive_entry_set_filetype(e, m->data ? AE_IFREG : AE_IFDIR);
		if (m->data && !strncmp(m->data, "->", 2)) {
			archive_entry_set_filetype(e, AE_IFLNK);
			archive_entry_set_symlink(e, m->data + 2);
		} else if (m->data && *m->data == '=') {
			archive_entry_set_hardlink(e, m->data + 1);
		} else if (m->data) {
			archive_entry_set_size(e, m->size ? (int64_t)m->size
							  : (int64_t)strlen(m->data));
		}
		archive_write_header(a, e);
		if (m->data && !m->size)
			archive_write_data(a, m->data, strlen(m->data));
		archive_entry_free(e);
		if (m->size)
			break;
	}
	archive_write_close(a);
	archive_write_free(a);
	return used;
}

static int from_tar(const struct member *members, struct mc_topology **topo, struct mc_error *error)
{
	static char buf[1 << 20];
	size_t len = make_tar(buf, sizeof(buf), members);
	struct topo_files *files;
	int rc = topo_files_from_memory(buf, len, &files, error);

	if (rc < 0)
		return rc;
	rc = topo_read_machine(files, "archive", topo, error);
	topo_files_put(files);
	return rc;
}

static void hostile(int expect, const char *text, const struct member *members)
{
	struct mc_topology *topo = NULL;
	struct mc_error error = { 0 };
	int rc = from_tar(members, &topo, &error);

	if (rc != expect || (text && !strstr(error.text, text)))
		fail_msg("%d: %s (expected %d, %s)", rc, error.text, expect, text ? text : "");
	mc_topology_put(topo);
}

#define CPU "sys/devices/system/cpu"
#define ONLINE { CPU "/online", "0-1\n", 0 }
#define END { NULL, NULL, 0 }

static void test_hostile(void **state)
{
	(void)state;
	hostile(0, NULL, (const struct member[]){ ONLINE, END });
	hostile(0, NULL,
		(const struct member[]){
			{"./box/" CPU "/online", "0-1\n", 0}, {"box/readme", "x", 0}, END});
	hostile(0, NULL, (const struct member[]){ { "a//sys/./devices/system/cpu/online", "0", 0 }, END });
	hostile(-EINVAL, "more than one machine",
		(const struct member[]){ { "a/" CPU "/online", "0", 0 }, { "b/" CPU "/online", "0", 0 }, END });
	hostile(-EINVAL, "no sys/ or proc/", (const struct member[]){ { "a/b/" CPU "/online", "0", 0 }, END });
	hostile(-EINVAL, "absolute path", (const struct member[]){ ONLINE, { "/sys/x", "0", 0 }, END });
	hostile(-EINVAL, "'..'", (const struct member[]){ ONLINE, { "sys/../../etc/passwd", "0", 0 }, END });
	hostile(-ELOOP, "loop of links",
		(const struct member[]){ONLINE, {"sys/a", "->b", 0}, {"sys/b", "->a", 0}, END});
	hostile(-EINVAL, "leads out", (const struct member[]){ ONLINE, { "sys/a", "->../../../etc", 0 }, END });
	hostile(0, NULL, (const struct member[]){ ONLINE, { "sys/a", "->nowhere", 0 }, END });
	hostile(0, NULL, (const struct member[]){ ONLINE, { CPU "/present", "=" CPU "/online", 0 }, END });
	hostile(-EINVAL, "hard link", (const struct member[]){ { CPU "/online", "=" CPU "/nothing", 0 }, END });
	hostile(-EFBIG, "256 MiB", (const struct member[]){ ONLINE, { "sys/big", "", 10ull << 30 }, END });
	hostile(-EINVAL, "not gzipped", (const struct member[]){ ONLINE, { "sys/x.gz", "plain", 0 }, END });
	hostile(0, NULL, (const struct member[]){ ONLINE, { CPU "/kernel_max", "4294967295\n", 0 }, END });
	hostile(-ERANGE, "number too large",
		(const struct member[]){ONLINE, {CPU "/kernel_max", "4294967296\n", 0}, END});
	hostile(-ERANGE, "can't have", (const struct member[]){ { CPU "/online", "0-4294967294\n", 0 }, END });
	hostile(-ERANGE, "can't have", (const struct member[]){ { CPU "/online", "0-65536\n", 0 }, END });
	hostile(-EINVAL, "names no CPU", (const struct member[]){ { CPU "/online", "\n", 0 }, END });
	hostile(-EINVAL, "not a list", (const struct member[]){ { CPU "/online", "0-x\n", 0 }, END });
	hostile(-EINVAL, "no such folder", (const struct member[]){ { "proc/cpuinfo", "x", 0 }, END });
	hostile(-ERANGE, "can't have",
		(const struct member[]){
			ONLINE, {CPU "/cpu0/topology/core_cpus_list", "0,7\n", 0}, END});
	hostile(-ERANGE, "number too large",
		(const struct member[]){
			ONLINE, {CPU "/cpu0/topology/core_id", "99999999999\n", 0}, END});
	hostile(0, NULL,
		(const struct member[]){
			ONLINE, {"sys/devices/system/node/node4294967295/cpulist", "0\n", 0}, END});
	hostile(-ERANGE, "can't have",
		(const struct member[]){
			ONLINE, {"sys/devices/system/node/online", "0,4294967294\n", 0}, END});
	hostile(-ERANGE, "more than 255",
		(const struct member[]){ONLINE,
					{"sys/devices/system/node/online", "0\n", 0},
					{"sys/devices/system/node/node0/distance", "300\n", 0},
					END});
}

static void test_duplicates_and_links(void **state)
{
	struct mc_topology *t = NULL;
	struct mc_error error = { 0 };
	size_t len;

	(void)state;
	assert_int_equal(from_tar((const struct member[]){ { CPU "/online", "0-7\n", 0 }, { CPU "/online", "0-3\n", 0 },
							   { "sys/class/a", "->../devices/system", 0 }, END },
				  &t, &error), 0);
	assert_string_equal(list_of(mc_topology_online(t)), "0-3");
	assert_non_null(mc_topology_file(t, "/sys/devices/system/cpu/online", &len));
	assert_int_equal(len, 4);
	assert_null(mc_topology_file(t, "/sys/devices/system/cpu", &len));
	assert_null(mc_topology_file(t, "/etc/passwd", &len));
	mc_topology_put(t);
}

/* Cut at every 997th byte: an error or the machine, nothing else. */
static void test_cut(void **state)
{
	FILE *f = fopen(MACHINES "/x86-612-single.tgz", "r");
	static char buf[1 << 17];
	size_t len;

	(void)state;
	assert_non_null(f);
	len = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	for (size_t n = 0; n < len; n += 997) {
		struct topo_files *files = NULL;
		struct mc_error error = { 0 };
		int rc = topo_files_from_memory(buf, n, &files, &error);

		assert_true(rc < 0);
		assert_true(*error.text);
	}
}

/* A folder with a pipe (never opened), a huge hole, and a link to a file outside. */
static void test_folder(void **state)
{
	const char *dir = scratch_make();
	char path[512];
	struct mc_topology *t = NULL;
	struct mc_error error = { 0 };
	int fd;

	(void)state;
	assert_non_null(dir);
	for (const char *const *d = (const char *const[]){"/sys", "/sys/devices",
							  "/sys/devices/system", "/" CPU, NULL};
	     *d; d++) {
		snprintf(path, sizeof(path), "%s%s", dir, *d);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	snprintf(path, sizeof(path), "%s/" CPU "/online", dir);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	assert_int_equal(write(fd, "0-3\n", 4), 4);
	close(fd);
	snprintf(path, sizeof(path), "%s/sys/pipe", dir);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(mc_topology_load(dir, &t, &error), 0);
	assert_string_equal(list_of(mc_topology_online(t)), "0-3");
	mc_topology_put(t);
	snprintf(path, sizeof(path), "%s/sys/hole", dir);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	if (ftruncate(fd, 10ll << 30) == 0)
		assert_int_equal(mc_topology_load(dir, &t, &error), -EFBIG);
	close(fd);
	unlink(path);
	snprintf(path, sizeof(path), "%s/sys/out", dir);
	assert_int_equal(symlink("../../../../etc/passwd", path), 0);
	assert_int_equal(mc_topology_load(dir, &t, &error), -EINVAL);
	assert_non_null(strstr(error.text, "leads out"));
}

static void test_live(void **state)
{
	struct mc_topology *t = NULL;
	struct mc_error error = { 0 };

	(void)state;
	if (mc_topology_live(&t, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(mc_topology_nr_cpu_ids(t), mc_nr_cpu_ids());
	assert_false(mc_cpumask_empty(mc_topology_allowed(t)));
	assert_true(mc_cpumask_subset(mc_topology_allowed(t), mc_topology_online(t)));
	assert_true(mc_topology_mem_total(t) > 0);
	mc_topology_put(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_main_job),
		cmocka_unit_test(test_smp),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_online),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_recordings),
		cmocka_unit_test(test_recorded_facts),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_duplicates_and_links),
		cmocka_unit_test(test_cut),
		cmocka_unit_test_teardown(test_folder, scratch_remove),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

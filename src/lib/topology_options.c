// SPDX-License-Identifier: MIT
/*
 * topology_options.c - the words that describe a machine: QEMU's -smp, -m and -numa, the kernel's
 * numa=.
 *
 * mc_machine_option() checks what one option says by itself and remembers it; what options say
 * together is checked by mc_machine_build() (topology_machine.c). Nothing here depends on the host.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "topology_priv.h"

/* An option's value with the place that is being read: faults are told with their offset. */
struct words {
	const char *option, *text;
	const char *at;
	struct mc_error *error;
};

struct pair {
	const char *key, *value; /* value NULL: a bare word */
	size_t key_len, value_len;
};

static int fault(const struct words *w, int err, const char *where, const char *problem)
{
	return mc_fail_at(w->error, err, (size_t)(where - w->text), "--%s %.200s: %s", w->option, w->text, problem);
}

static bool next_pair(struct words *w, struct pair *p)
{
	const char *end, *eq;

	if (!*w->at)
		return false;
	end = strchrnul(w->at, ',');
	eq = memchr(w->at, '=', (size_t)(end - w->at));
	p->key = w->at;
	p->key_len = (size_t)((eq ? eq : end) - w->at);
	p->value = eq ? eq + 1 : NULL;
	p->value_len = eq ? (size_t)(end - eq - 1) : 0;
	w->at = *end ? end + 1 : end;
	return true;
}

static bool key_is(const struct pair *p, const char *key)
{
	return p->value && p->key_len == strlen(key) && !memcmp(p->key, key, p->key_len);
}

static int parse_number(const struct words *w, const char *text, size_t len, unsigned int max,
			unsigned int *value)
{
	unsigned long long v;
	char buf[24], *end;

	if (!len || len >= sizeof(buf) || !isdigit((unsigned char)*text))
		return fault(w, EINVAL, text, "expected a number here");
	memcpy(buf, text, len);
	buf[len] = '\0';
	errno = 0;
	v = strtoull(buf, &end, 0);
	if (*end)
		return fault(w, EINVAL, text + (end - buf), "expected a number here");
	if (errno || v > max) {
		char problem[80];

		snprintf(problem, sizeof(problem), "number too large; at most %u", max);
		return fault(w, ERANGE, text, problem);
	}
	*value = (unsigned int)v;
	return 0;
}

int topo_parse_size(const char *text, size_t len, uint64_t *size)
{
	static const char suffix[] = "BKMGTPE";
	uint64_t whole = 0, unit = 1ull << 20, part = 0, scale = 1;
	const char *p = text, *end = text + len, *s;

	if (p == end || !isdigit((unsigned char)*p))
		return -EINVAL;
	for (; p < end && isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
			return -ERANGE;
	if (p < end && *p == '.') {
		for (p++; p < end && isdigit((unsigned char)*p); p++) {
			if (scale >= 100000000ull)
				continue;
			part = part * 10 + (uint64_t)(*p - '0');
			scale *= 10;
		}
	}
	if (p < end) {
		s = memchr(suffix, toupper((unsigned char)*p), sizeof(suffix) - 1);
		if (!s)
			return -EINVAL;
		unit = 1ull << (10 * (s - suffix));
		p++;
		if (p < end && *p == 'i' && unit > 1)
			p++;
		if (p < end && (*p == 'B' || *p == 'b') && unit > 1)
			p++;
	}
	if (p != end)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit, &whole) || whole > 1ull << 60)
		return -ERANGE;
	*size = whole + (uint64_t)((unsigned __int128)part * unit / scale);
	return 0;
}

static int parse_memory(const struct words *w, const char *text, size_t len, bool zero,
			uint64_t *size)
{
	int rc = topo_parse_size(text, len, size);

	if (rc == -EINVAL)
		return fault(w, EINVAL, text, "expected a size such as 512M, 64G or 1.5T here");
	if (rc < 0)
		return fault(w, ERANGE, text, "size too large; at most 1E");
	if (*size % 4096)
		return fault(w, EINVAL, text, "size is not a multiple of 4 KiB");
	if (!*size && !zero)
		return fault(w, EINVAL, text, "a machine needs memory");
	return 0;
}

/* ---- --smp ----------------------------------------------------------------------------------- */

static int parse_smp(struct mc_machine *m, struct words *w)
{
	struct topo_smp smp = { .given = true };
	const struct {
		const char *key;
		unsigned int *to;
	} keys[] = {
		{ "cpus", &smp.cpus },         { "sockets", &smp.sockets }, { "dies", &smp.dies },
		{ "clusters", &smp.clusters }, { "cores", &smp.cores },     { "threads", &smp.threads },
		{ "maxcpus", &smp.maxcpus },
	};
	struct topo_spec spec;
	struct pair p;
	int rc;

	for (bool first = true; next_pair(w, &p); first = false) {
		size_t k;

		if (!p.value && first) {
			p.value = p.key;
			p.value_len = p.key_len;
			p.key = "cpus";
			p.key_len = 4;
		}
		for (k = 0; k < MC_ARRAY_SIZE(keys) && !key_is(&p, keys[k].key); k++)
			;
		if (k == MC_ARRAY_SIZE(keys))
			return fault(w, EINVAL, p.key,
				     "unknown word; known are cpus= sockets= dies= clusters= cores= threads= maxcpus=");
		rc = parse_number(w, p.value, p.value_len, TOPO_MAX_CPUS, keys[k].to);
		if (rc < 0)
			return rc;
		if (!*keys[k].to)
			return fault(w, EINVAL, p.value, "must be greater than zero");
	}
	rc = topo_smp_complete(&smp, &spec, w->error);
	if (rc == 0)
		m->smp = smp;
	return rc;
}

static unsigned int or_one(unsigned int n)
{
	return n ? n : 1;
}

int topo_smp_complete(const struct topo_smp *given, struct topo_spec *spec, struct mc_error *error)
{
	unsigned int dies = or_one(given->dies), clusters = or_one(given->clusters);
	unsigned int sockets = given->sockets, cores = given->cores, threads = given->threads;
	unsigned int cpus = given->cpus, maxcpus = given->maxcpus ? given->maxcpus : given->cpus;
	uint64_t product;

	/* What is left out is worked out in this order: cores before sockets, threads last. */
	if (!maxcpus) {
		sockets = or_one(sockets);
		cores = or_one(cores);
		threads = or_one(threads);
	} else if (!cores) {
		sockets = or_one(sockets);
		threads = or_one(threads);
		cores = (unsigned int)(maxcpus / ((uint64_t)sockets * dies * clusters * threads));
	} else if (!sockets) {
		threads = or_one(threads);
		sockets = (unsigned int)(maxcpus / ((uint64_t)dies * clusters * cores * threads));
	}
	if (!threads)
		threads = (unsigned int)(maxcpus /
					 ((unsigned __int128)sockets * dies * clusters * cores));
	if (__builtin_mul_overflow((uint64_t)sockets * dies, (uint64_t)clusters * cores,
				   &product) ||
	    __builtin_mul_overflow(product, threads, &product) || product > TOPO_MAX_CPUS)
		return mc_fail(error, ERANGE, "--smp: more than %u CPUs; that is the most a machine may have",
			       TOPO_MAX_CPUS);
	maxcpus = maxcpus ? maxcpus : (unsigned int)product;
	cpus = cpus ? cpus : maxcpus;
	if (product != maxcpus)
		return mc_fail(
			error, EINVAL,
			"--smp: sockets (%u) * dies (%u) * clusters (%u) * cores (%u) * threads (%u) is not %s (%u); "
			"give numbers whose product is that",
			sockets, dies, clusters, cores, threads,
			given->maxcpus ? "maxcpus" : "cpus", maxcpus);
	if (cpus > maxcpus)
		return mc_fail(error, EINVAL, "--smp: %u CPUs are more than maxcpus=%u", cpus, maxcpus);
	spec->cpus = cpus;
	spec->maxcpus = maxcpus;
	spec->sockets = sockets;
	spec->dies = dies;
	spec->clusters = clusters;
	spec->cores = cores;
	spec->threads = threads;
	return 0;
}

/* ---- --numa ---------------------------------------------------------------------------------- */

/* cpus=0-3 may come several times, and commas would end it: each adds a range. */
static int parse_cpus(const struct words *w, const struct pair *p, struct mc_cpumask *cpus)
{
	char buf[64];
	struct mc_cpumask *more;
	size_t where = 0;
	int rc;

	if (!p->value_len || p->value_len >= sizeof(buf))
		return fault(w, EINVAL, p->value, "expected CPUs such as 0-3 here");
	memcpy(buf, p->value, p->value_len);
	buf[p->value_len] = '\0';
	more = mc_cpumask_alloc_bits(TOPO_MAX_CPUS);
	if (!more)
		return fault(w, ENOMEM, p->value, "out of memory");
	rc = mc_cpulist_parse(more, buf, &where);
	if (rc < 0)
		rc = fault(w, -rc, p->value + where, "expected CPUs such as 0-3 here, below 65536");
	else
		mc_cpumask_or(cpus, cpus, more);
	mc_cpumask_free(more);
	return rc;
}

/* A word without '=' after cpus= goes on with its list, so that cpus=0-3,8-11 works as users write
 * it. */
static bool continues_list(const struct pair *p, const struct pair *before)
{
	return !p->value && p->key_len && isdigit((unsigned char)*p->key) && before->key && key_is(before, "cpus");
}

static int parse_node(struct mc_machine *m, struct words *w)
{
	struct topo_spec_node node = { .id = UINT_MAX }, *list;
	struct pair p, before = { 0 };
	int rc = 0;

	while (rc == 0 && next_pair(w, &p)) {
		if (continues_list(&p, &before)) {
			p.value = p.key;
			p.value_len = p.key_len;
			p.key = "cpus";
			p.key_len = 4;
		}
		before = p;
		if (key_is(&p, "nodeid")) {
			rc = parse_number(w, p.value, p.value_len, TOPO_MAX_NODES - 1, &node.id);
		} else if (key_is(&p, "cpus")) {
			if (!node.cpus)
				node.cpus = mc_cpumask_alloc_bits(TOPO_MAX_CPUS);
			rc = node.cpus ? parse_cpus(w, &p, node.cpus) : fault(w, ENOMEM, p.key, "out of memory");
		} else if (key_is(&p, "mem")) {
			node.has_mem = true;
			rc = parse_memory(w, p.value, p.value_len, true, &node.mem);
		} else {
			rc = fault(w, EINVAL, p.key, "unknown word; known are nodeid= cpus= mem=");
		}
	}
	/* As QEMU: a node without a number takes the place it stands at. */
	if (node.id == UINT_MAX)
		node.id = m->nr_nodes;
	for (unsigned int i = 0; rc == 0 && i < m->nr_nodes; i++)
		if (m->node[i].id == node.id)
			rc = fault(w, EINVAL, w->text, "this node was described before");
	list = rc == 0 ? realloc(m->node, (m->nr_nodes + 1) * sizeof(*list)) : NULL;
	if (!list) {
		mc_cpumask_free(node.cpus);
		return rc < 0 ? rc : fault(w, ENOMEM, w->text, "out of memory");
	}
	m->node = list;
	m->node[m->nr_nodes++] = node;
	return 0;
}

static int parse_dist(struct mc_machine *m, struct words *w)
{
	struct topo_spec_dist d = { UINT_MAX, UINT_MAX, UINT_MAX }, *list;
	struct pair p;
	int rc = 0;

	while (rc == 0 && next_pair(w, &p)) {
		if (key_is(&p, "src"))
			rc = parse_number(w, p.value, p.value_len, TOPO_MAX_NODES - 1, &d.src);
		else if (key_is(&p, "dst"))
			rc = parse_number(w, p.value, p.value_len, TOPO_MAX_NODES - 1, &d.dst);
		else if (key_is(&p, "val"))
			rc = parse_number(w, p.value, p.value_len, 255, &d.val);
		else
			rc = fault(w, EINVAL, p.key, "unknown word; known are src= dst= val=");
	}
	if (rc < 0)
		return rc;
	if (d.src == UINT_MAX || d.dst == UINT_MAX || d.val == UINT_MAX)
		return fault(w, EINVAL, w->text, "a distance needs src=, dst= and val=");
	if (d.val < 10)
		return fault(w, ERANGE, w->text, "a distance is from 10 to 255");
	if (d.src == d.dst && d.val != 10)
		return fault(w, EINVAL, w->text, "the distance of a node to itself is 10");
	list = realloc(m->dist, (m->nr_dists + 1) * sizeof(*list));
	if (!list)
		return fault(w, ENOMEM, w->text, "out of memory");
	m->dist = list;
	m->dist[m->nr_dists++] = d;
	return 0;
}

static int set_text(char **to, struct words *w, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return fault(w, ENOMEM, w->text, "out of memory");
	free(*to);
	*to = copy;
	return 0;
}

static int parse_numa(struct mc_machine *m, struct words *w)
{
	if (!strncmp(w->text, "fake=", 5))
		return set_text(&m->fake, w, w->text + 5);
	if (!strcmp(w->text, "node") || !strncmp(w->text, "node,", 5)) {
		w->at += w->text[4] ? 5 : 4;
		return parse_node(m, w);
	}
	if (!strncmp(w->text, "dist,", 5)) {
		w->at += 5;
		return parse_dist(m, w);
	}
	return fault(w, EINVAL, w->text, "expected node,... dist,... or fake=... here");
}

int mc_machine_option(struct mc_machine *machine, const char *name, const char *value,
		      struct mc_error *error)
{
	struct words w = { .option = name, .text = value, .at = value, .error = error };
	struct mc_cpumask *mask;
	size_t where = 0;
	int rc;

	if (!strcmp(name, "smp"))
		return *value ? parse_smp(machine, &w) : fault(&w, EINVAL, value, "expected a number of CPUs");
	if (!strcmp(name, "mem"))
		return parse_memory(&w, value, strlen(value), false, &machine->mem);
	if (!strcmp(name, "nodes")) {
		unsigned int n;

		rc = parse_number(&w, value, strlen(value), TOPO_MAX_NODES, &n);
		if (rc == 0 && !n)
			return fault(&w, EINVAL, value, "a machine has at least one node");
		if (rc == 0)
			machine->nodes = n;
		return rc;
	}
	if (!strcmp(name, "numa"))
		return parse_numa(machine, &w);
	if (!strcmp(name, "machine")) {
		if (!strchr(value, '/') && !topo_preset_find(value))
			return fault(&w, ENOENT, value,
				     "no preset of this name; --machine list tells them, a path needs a '/' (./NAME)");
		return set_text(&machine->base, &w, value);
	}
	if (!strcmp(name, "offline")) {
		mask = mc_cpumask_alloc_bits(TOPO_MAX_CPUS);
		if (!mask)
			return fault(&w, ENOMEM, value, "out of memory");
		rc = mc_cpulist_parse(mask, value, &where);
		mc_cpumask_free(mask);
		return rc < 0 ? fault(&w, -rc, value + where, "expected CPUs such as 3,8-11 here, below 65536") :
				set_text(&machine->offline, &w, value);
	}
	return mc_fail(error, EINVAL, "describing a machine: --%s: no such option", name);
}

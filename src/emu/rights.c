// SPDX-License-Identifier: MIT
/*
 * rights.c - what a caller may do, as its kernel would check it: the emulator may do more than its
 * programs, real root's above all.
 *
 * Read from /proc/PID/status, whose ids are all in the emulator's own user namespace and so
 * comparable. Capabilities are not: whoever makes a user namespace has all of them there. They
 * count over what is in that namespace, and those of the command's own over the whole machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/internal.h"

enum { CAP_PTRACE = 19, CAP_NICE = 23 };

struct rights {
	unsigned long tgid;
	unsigned long uid[4], gid[4]; /* real, effective, saved, of file systems */
	uint64_t effective, permitted;
};

static bool read_rights(pid_t tid, struct rights *r)
{
	char text[4096], *p;

	if (emu_proc_read(text, sizeof(text), "/proc/%d/status", tid) < 0)
		return false;
	p = strstr(text, "\nTgid:");
	r->tgid = p ? strtoul(p + 6, NULL, 10) : 0;
	p = strstr(text, "\nUid:");
	if (!p || sscanf(p, "\nUid: %lu %lu %lu %lu", &r->uid[0], &r->uid[1], &r->uid[2],
			 &r->uid[3]) != 4)
		return false;
	p = strstr(text, "\nGid:");
	if (!p || sscanf(p, "\nGid: %lu %lu %lu %lu", &r->gid[0], &r->gid[1], &r->gid[2],
			 &r->gid[3]) != 4)
		return false;
	p = strstr(text, "\nCapPrm:");
	r->permitted = p ? strtoull(p + 8, NULL, 16) : 0;
	p = strstr(text, "\nCapEff:");
	r->effective = p ? strtoull(p + 8, NULL, 16) : 0;
	return true;
}

static bool user_namespace(pid_t tid, struct emu_namespace *ns)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", tid);
	if (stat(path, &st) < 0)
		return false;
	ns->dev = st.st_dev;
	ns->ino = st.st_ino;
	return true;
}

static bool same(const struct emu_namespace *a, const struct emu_namespace *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* Do the caller's capabilities count over the target? */
static bool count_over(struct emu *emu, pid_t caller, pid_t target)
{
	struct emu_namespace own, its;

	if (!user_namespace(caller, &own))
		return false;
	if (same(&own, &emu->userns) && emu_task_known(emu, (pid_t)emu_proc_field(target, "Tgid:")))
		return true;
	return user_namespace(target, &its) && same(&own, &its);
}

bool emu_capable(struct emu_call *call, unsigned int cap)
{
	struct emu_namespace own;
	struct rights r;

	return read_rights(call->caller, &r) && (r.effective >> cap & 1) &&
	       user_namespace(call->caller, &own) && same(&own, &call->emu->userns);
}

/* What /proc shows of a process that is not dumpable belongs to root. */
static bool is_dumpable(pid_t pid, const struct rights *r)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return stat(path, &st) == 0 && st.st_uid == r->uid[1] && st.st_gid == r->gid[1];
}

bool emu_may_look(struct emu_call *call, pid_t target, bool by_real_ids)
{
	const int who = by_real_ids ? 0 : 3;
	struct rights c, t;
	uint64_t caps;

	if (target == call->caller)
		return true;
	if (!read_rights(call->caller, &c) || !read_rights(target, &t))
		return false;
	if (c.tgid == t.tgid)
		return true;
	if ((c.effective >> CAP_PTRACE & 1) && count_over(call->emu, call->caller, target))
		return true;
	for (int i = 0; i < 3; i++)
		if (c.uid[who] != t.uid[i] || c.gid[who] != t.gid[i])
			return false;
	/* Nor may it read what holds more capabilities than itself. */
	caps = by_real_ids ? c.permitted : c.effective;
	return is_dumpable(target, &t) && !(t.permitted & ~caps);
}

bool emu_may_schedule(struct emu_call *call, pid_t tid)
{
	struct rights c, t;

	if (tid == 0 || tid == call->caller)
		return true;
	if (!read_rights(call->caller, &c) || !read_rights(tid, &t))
		return false;
	return c.uid[1] == t.uid[1] || c.uid[1] == t.uid[0] ||
	       ((c.effective >> CAP_NICE & 1) && count_over(call->emu, call->caller, tid));
}

/* By the ids that files are checked with. */
bool emu_is_owner(struct emu_call *call)
{
	struct rights r;

	return read_rights(call->caller, &r) && r.uid[3] == geteuid();
}

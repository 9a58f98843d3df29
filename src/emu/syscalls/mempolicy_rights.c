// SPDX-License-Identifier: MIT
/*
 * mempolicy_rights.c - what a caller may do, as its kernel would check it: the emulator may do more
 * than its programs.
 *
 * Read from /proc/PID/status, whose ids are all in the emulator's own user namespace and so
 * comparable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/syscalls/mempolicy.h"

struct rights {
	unsigned long uid[3], gid[3]; /* real, effective, saved */
	uint64_t effective, permitted;
};

static bool read_rights(pid_t pid, struct rights *r)
{
	char text[4096], *p;

	if (emu_proc_read(text, sizeof(text), "/proc/%d/status", pid) < 0)
		return false;
	p = strstr(text, "\nUid:");
	if (!p || sscanf(p, "\nUid: %lu %lu %lu", &r->uid[0], &r->uid[1], &r->uid[2]) != 3)
		return false;
	p = strstr(text, "\nGid:");
	if (!p || sscanf(p, "\nGid: %lu %lu %lu", &r->gid[0], &r->gid[1], &r->gid[2]) != 3)
		return false;
	p = strstr(text, "\nCapPrm:");
	r->permitted = p ? strtoull(p + 8, NULL, 16) : 0;
	p = strstr(text, "\nCapEff:");
	r->effective = p ? strtoull(p + 8, NULL, 16) : 0;
	return true;
}

bool mp_capable(pid_t tid, unsigned int cap)
{
	struct rights r;

	return read_rights(tid, &r) && (r.effective >> cap & 1);
}

bool mp_may_read(pid_t caller, pid_t target)
{
	enum { CAP_PTRACE = 19 };
	struct rights c, t;

	if (caller == target)
		return true;
	if (!read_rights(caller, &c) || !read_rights(target, &t))
		return false;
	if (c.effective >> CAP_PTRACE & 1)
		return true;
	for (int i = 0; i < 3; i++)
		if (c.uid[0] != t.uid[i] || c.gid[0] != t.gid[i])
			return false;
	/* Nor may it read what holds more capabilities than itself. */
	return !(t.permitted & ~c.permitted);
}

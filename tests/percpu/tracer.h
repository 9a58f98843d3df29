/* SPDX-License-Identifier: MIT */
/* tracer.h - what the tests that stop a child at instructions share: stops, registers, breakpoints;
 * x86-64 and arm64. */
#ifndef MC_TEST_TRACER_H
#define MC_TEST_TRACER_H

#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "check.h"

/* A breakpoint instruction, and how far past it the program counter is when it has stopped. */
#if defined(__x86_64__)
#define WITH_BREAKPOINT(word) (((word) & ~0xfful) | 0xcc)
#define PC rip
enum { PAST = 1 };
#else
#define WITH_BREAKPOINT(word) (((word) & ~0xfffffffful) | 0xd4200000)
#define PC pc
enum { PAST = 0 };
#endif

static pid_t pid;

static inline int wait_stop(void)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK(WIFSTOPPED(status), "the child ended: %#x", status);
	return WSTOPSIG(status);
}

static inline uint64_t ip(void)
{
	struct user_regs_struct regs;
	struct iovec v = {&regs, sizeof(regs)};

	CHECK(!ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v), "regs");
	return regs.PC;
}

static inline void set_ip(uint64_t to)
{
	struct user_regs_struct regs;
	struct iovec v = {&regs, sizeof(regs)};

	CHECK(!ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v), "regs");
	regs.PC = to;
	CHECK(!ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &v), "regs");
}

/* Lets the child run until it comes to `at`, which it has not executed then. False: it stopped for
 * another reason. */
static inline bool run_to(uint64_t at)
{
	unsigned long word = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, at, 0);
	int sig;

	CHECK(!ptrace(PTRACE_POKETEXT, pid, at, WITH_BREAKPOINT(word)), "breakpoint");
	ptrace(PTRACE_CONT, pid, 0, 0);
	sig = wait_stop();
	ptrace(PTRACE_POKETEXT, pid, at, word);
	if (sig != SIGTRAP || ip() != at + PAST)
		return false;
	set_ip(at);
	return true;
}

#endif

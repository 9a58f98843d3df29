// SPDX-License-Identifier: MIT
/*
 * guest_memory.c - a virtual machine's memory, made ready before it starts: huge pages interleaved
 * over all nodes.
 *
 * With a path on a hugetlbfs the file is what QEMU takes as memory-backend-file; without one a
 * memfd is used, whose descriptor a VMM would be handed. Usage: guest_memory MIB [FILE]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <manycore/manycore.h>

static void show(void *arg, uint64_t ready, uint64_t total)
{
	(void)arg;
	fprintf(stderr, "\r%3llu%%", (unsigned long long)(ready * 100 / total));
}

int main(int argc, char **argv)
{
	uint64_t size = (argc > 1 ? strtoull(argv[1], NULL, 0) : 64) << 20;
	struct mc_arena_attr attr = {.backing = MC_ARENA_MEMFD,
				     .size = size,
				     .page_size = 2 << 20,
				     .policy = MC_ARENA_INTERLEAVE,
				     .flags = MC_ARENA_NO_DESCRIPTORS,
				     .progress = show};
	struct mc_arena_report r;
	struct mc_arena *guest = NULL;
	struct mc_error error;
	char line[512];
	int rc;

	if (argc > 2) {
		attr.backing = MC_ARENA_FILE;
		attr.page_size = 0; /* the file system's */
		attr.flags |= MC_ARENA_GROW;
		attr.fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (attr.fd < 0) {
			perror(argv[2]);
			return 1;
		}
	}
	rc = mc_arena_create(&attr, &guest, &error);
	if (!rc) {
		rc = mc_arena_wait(guest, 0, -1);
		if (rc && argc <= 2) { /* not enough huge pages: a guest in base pages runs too */
			mc_arena_destroy(guest);
			guest = NULL;
			attr.page_size = 0;
			fputs("\nno huge pages for it; base pages then\n", stderr);
			rc = mc_arena_create(&attr, &guest, &error);
			if (!rc)
				rc = mc_arena_wait(guest, 0, -1);
		}
	}
	if (rc && !guest) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	fputc('\n', stderr);
	for (unsigned int k = 0; mc_arena_part_report(guest, k, &r) == 0; k++) {
		mc_arena_report_snprint(line, sizeof(line), &r);
		puts(line);
	}
	printf("guest memory: %zu kB pages, descriptor %d\n", mc_arena_page_size(guest) >> 10,
	       mc_arena_fd(guest));
	mc_arena_destroy(guest);
	return rc ? 1 : 0;
}

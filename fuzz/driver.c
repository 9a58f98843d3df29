// SPDX-License-Identifier: MIT
/*
 * driver.c - main() of the fuzz targets in builds without libFuzzer: runs the target once on each
 * file named, and on each file of each folder named (not below it). Used by `meson test --suite
 * fuzz`, and by hand to repeat a finding: build/fuzz/fuzz_NAME FILE.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL, *exact;
	size_t len = 0, room = 0, n;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	do {
		if (len == room) {
			room = room ? room * 2 : 4096;
			data = realloc(data, room);
			if (!data)
				abort();
		}
		n = fread(data + len, 1, room - len, f);
		len += n;
	} while (n);
	if (ferror(f)) {
		fprintf(stderr, "%s: cannot be read\n", path);
		fclose(f);
		free(data);
		return 1;
	}
	fclose(f);
	/* A block of exactly the input's size, so that valgrind and ASan see a read past its end.
	 */
	exact = malloc(len ? len : 1);
	if (!exact)
		abort();
	memcpy(exact, data, len);
	free(data);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	inputs++;
	return 0;
}

static int run_dir(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int bad = 0;

	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	while ((e = readdir(d))) {
		char file[4096];
		struct stat st;

		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		if (e->d_name[0] != '.' && !stat(file, &st) && S_ISREG(st.st_mode))
			bad |= run_file(file);
	}
	closedir(d);
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (!stat(argv[i], &st) && S_ISDIR(st.st_mode))
			bad |= run_dir(argv[i]);
		else
			bad |= run_file(argv[i]);
	}
	printf("%lu inputs\n", inputs);
	/* An empty corpus is a mistake, not a pass. */
	return bad || !inputs;
}

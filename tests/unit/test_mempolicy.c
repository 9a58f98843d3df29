// SPDX-License-Identifier: MIT
/*
 * test_mempolicy.c - the library's memory policy calls on the kernel that runs the tests (any
 * number of nodes), or on the emulated machine when the test itself runs inside `manycore run`.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include <manycore/manycore.h>
#include "skip.h"

enum { NBITS = 1024, PAGES = 8 };

static size_t page;
static unsigned int first; /* the first node this process may use */

static struct mc_nodemask *new_mask(unsigned int nbits)
{
	return (struct mc_nodemask *)mc_cpumask_alloc_bits(nbits);
}

static void free_mask(struct mc_nodemask *mask)
{
	mc_cpumask_free(&mask->m);
}

static struct mc_nodemask *one_node(unsigned int nbits, unsigned int node)
{
	struct mc_nodemask *mask = new_mask(nbits);

	mc_cpumask_set(&mask->m, node);
	return mask;
}

static char *region(void)
{
	char *a = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	assert_true(a != MAP_FAILED);
	return a;
}

static void test_thread_policy(void **state)
{
	struct mc_nodemask *one = one_node(NBITS, first), *got = new_mask(NBITS);
	int mode = -1;

	(void)state;
	assert_int_equal(mc_mempolicy_set(MC_MPOL_BIND, one), 0);
	assert_int_equal(mc_mempolicy_get(&mode, got), 0);
	assert_int_equal(mode, MC_MPOL_BIND);
	assert_true(mc_cpumask_equal(&got->m, &one->m));
	assert_int_equal(mc_mempolicy_next_node(), -EINVAL);
	assert_int_equal(mc_mempolicy_set(MC_MPOL_INTERLEAVE | MC_MPOL_F_STATIC_NODES, one), 0);
	assert_int_equal(mc_mempolicy_get(&mode, NULL), 0);
	assert_int_equal(mode, MC_MPOL_INTERLEAVE | MC_MPOL_F_STATIC_NODES);
	assert_int_equal(mc_mempolicy_next_node(), (int)first);
	assert_int_equal(mc_mempolicy_set(MC_MPOL_DEFAULT, NULL), 0);
	assert_int_equal(mc_mempolicy_get(&mode, got), 0);
	assert_int_equal(mode, MC_MPOL_DEFAULT);
	assert_true(mc_cpumask_empty(&got->m));
	free_mask(one);
	free_mask(got);
}

static void test_masks_of_any_size(void **state)
{
	static const unsigned int sizes[] = {1,    2,    63,   64,    65,    128,
					     1000, 1024, 8192, 32768, 100000};
	struct mc_nodemask *none = new_mask(0);
	int mode;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct mc_nodemask *one, *got;

		if (sizes[i] <= first)
			continue;
		one = one_node(sizes[i], first);
		got = new_mask(sizes[i]);
		mc_cpumask_setall(&got->m); /* what was there must go */
		assert_int_equal(mc_mempolicy_set(MC_MPOL_PREFERRED, one), 0);
		assert_int_equal(mc_mempolicy_get(&mode, got), 0);
		assert_int_equal(mode, MC_MPOL_PREFERRED);
		assert_true(mc_cpumask_equal(&got->m, &one->m));
		free_mask(one);
		free_mask(got);
	}
	/* No room for the answer: said, and nothing is written. */
	mode = 77;
	assert_int_equal(mc_mempolicy_get(&mode, none), -EOVERFLOW);
	assert_int_equal(mode, 77);
	assert_int_equal(mc_mempolicy_set(MC_MPOL_DEFAULT, NULL), 0);
	assert_int_equal(mc_mempolicy_get(&mode, none), 0);
	assert_int_equal(mode, MC_MPOL_DEFAULT);
	free_mask(none);
}

static void test_errors(void **state)
{
	struct mc_nodemask *one = one_node(NBITS, first), *empty = new_mask(NBITS),
			   *far = one_node(100000, 99999);
	char *a = region();

	(void)state;
	assert_int_equal(mc_mempolicy_set(99, one), -EINVAL);
	assert_int_equal(mc_mempolicy_set(MC_MPOL_BIND, NULL), -EINVAL);
	assert_int_equal(mc_mempolicy_set(MC_MPOL_BIND, empty), -EINVAL);
	assert_int_equal(mc_mempolicy_set(MC_MPOL_BIND, far), -EINVAL);
	assert_int_equal(mc_mempolicy_set(MC_MPOL_DEFAULT, one), -EINVAL);
	assert_int_equal(
		mc_mempolicy_set(MC_MPOL_BIND | MC_MPOL_F_STATIC_NODES | MC_MPOL_F_RELATIVE_NODES,
				 one),
		-EINVAL);
	assert_int_equal(mc_mempolicy_set_range(a + 1, page, MC_MPOL_BIND, one, 0), -EINVAL);
	assert_int_equal(mc_mempolicy_set_range(a, page, MC_MPOL_BIND, one, 0x40), -EINVAL);
	assert_int_equal(mc_mempolicy_set_home_node(a, page, 1U << 20), -EINVAL);
	assert_int_equal(mc_mempolicy_allowed(NULL), -EINVAL);
	assert_int_equal(mc_migrate_pages(0, one, NULL), -EINVAL);
	assert_int_equal(mc_migrate_pages(0, one, empty), -EINVAL);
	assert_int_equal(mc_move_pages(0, 1, (void *[]){a}, NULL, NULL, 0), -EFAULT);
	munmap(a, PAGES * page);
	assert_int_equal(mc_mempolicy_set_range(a, page, MC_MPOL_BIND, one, 0), -EFAULT);
	assert_int_equal(mc_mempolicy_get_range(a, NULL, NULL), -EFAULT);
	free_mask(one);
	free_mask(empty);
	free_mask(far);
}

static void test_range_policy(void **state)
{
	struct mc_nodemask *one = one_node(NBITS, first), *got = new_mask(NBITS);
	char *a = region();
	int mode, rc;

	(void)state;
	assert_int_equal(mc_mempolicy_set_range(a + page, 2 * page, MC_MPOL_BIND, one, 0), 0);
	assert_int_equal(mc_mempolicy_get_range(a + page + 5, &mode, got), 0);
	assert_int_equal(mode, MC_MPOL_BIND);
	assert_true(mc_cpumask_equal(&got->m, &one->m));
	assert_int_equal(mc_mempolicy_get_range(a + 3 * page, &mode, got), 0);
	assert_int_equal(mode, MC_MPOL_DEFAULT);
	assert_true(mc_cpumask_empty(&got->m));
	rc = mc_mempolicy_set_home_node(a + page, 2 * page, first);
	assert_true(rc == 0 || rc == -ENOSYS);
	assert_int_equal(mc_mempolicy_set_range(a, PAGES * page, MC_MPOL_DEFAULT, NULL, 0), 0);
	assert_int_equal(mc_mempolicy_get_range(a + page, &mode, NULL), 0);
	assert_int_equal(mode, MC_MPOL_DEFAULT);
	munmap(a, PAGES * page);
	free_mask(one);
	free_mask(got);
}

static void test_pages(void **state)
{
	struct mc_nodemask *one = one_node(NBITS, first);
	char *a = region();
	void *pages[PAGES];
	int status[PAGES], nodes[PAGES];

	(void)state;
	assert_true(mc_page_node(a) < 0); /* nothing there yet: -ENOENT, -EFAULT on old kernels */
	assert_int_equal(mc_mempolicy_set_range(a, PAGES * page, MC_MPOL_BIND, one, 0), 0);
	memset(a, 1, (PAGES - 1) * page);
	assert_int_equal(mc_page_node(a + 3), (int)first);
	for (int i = 0; i < PAGES; i++) {
		pages[i] = a + (size_t)i * page;
		nodes[i] = (int)first;
		status[i] = -999;
	}
	assert_int_equal(mc_page_nodes(0, PAGES, pages, status), 0);
	for (int i = 0; i < PAGES - 1; i++)
		assert_int_equal(status[i], (int)first);
	assert_true(status[PAGES - 1] < 0);
	assert_int_equal(mc_move_pages(0, PAGES - 1, pages, nodes, status, MC_MPOL_MF_MOVE), 0);
	assert_int_equal(mc_move_range(a + 1, PAGES * page - 1, first), 0);
	assert_int_equal(mc_move_range(a, 0, first), 0);
	assert_int_equal(mc_move_range(a, SIZE_MAX, first), -EINVAL);
	assert_int_equal(mc_page_nodes(-1, 1, pages, status), -ESRCH);
	assert_int_equal(mc_migrate_pages(0, one, one), 0);
	munmap(a, PAGES * page);
	free_mask(one);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(mc_mempolicy_mode_name(MC_MPOL_BIND | MC_MPOL_F_STATIC_NODES), "bind");
	assert_string_equal(mc_mempolicy_mode_name(MC_MPOL_PREFERRED_MANY), "prefer (many)");
	assert_null(mc_mempolicy_mode_name(7));
	assert_null(mc_mempolicy_mode_name(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_policy), cmocka_unit_test(test_masks_of_any_size),
		cmocka_unit_test(test_errors),        cmocka_unit_test(test_range_policy),
		cmocka_unit_test(test_pages),         cmocka_unit_test(test_names),
	};
	struct mc_nodemask *allowed = new_mask(NBITS);
	struct mc_error error;
	int mode, rc;

	page = (size_t)sysconf(_SC_PAGESIZE);
	if (syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) < 0 &&
	    (errno == ENOSYS || errno == EPERM)) {
		/* The library must agree, in words. */
		rc = mc_mempolicy_available(&error);
		if ((rc != -ENOSYS && rc != -EPERM) || !strstr(error.text, "get_mempolicy"))
			return 1;
		test_skip("mempolicy", error.text);
	}
	if (mc_mempolicy_available(&error) || mc_mempolicy_allowed(allowed))
		return 1;
	first = mc_cpumask_first(&allowed->m);
	free_mask(allowed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

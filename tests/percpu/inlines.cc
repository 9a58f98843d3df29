// SPDX-License-Identifier: MIT
/* inlines.cc - every inline of percpu.h and counter.h from C++, under hard warnings, with results
 * looked at; the declaration of a static object and its definition in one file. */
#include <cstdint>
#include <cstdlib>
#include <manycore/counter.h>

MC_DECLARE_PER_CPU(unsigned long, shared_hits);
MC_DEFINE_PER_CPU(unsigned long, shared_hits);
static MC_DEFINE_PER_CPU(int, own_hits);

static void check(bool good)
{
	if (!good)
		abort();
}

template <class T> static T sum(T *h)
{
	T total = 0;
	unsigned int i, k;

	mc_for_each_percpu_copy (i, h)
		total = static_cast<T>(total + *mc_per_cpu_ptr(h, i));
	/* Nested, by a macro's expansion on one line. */
	mc_for_each_percpu_copy (i, h) mc_for_each_percpu_copy (k, h) check(k < 1u << 20);
	return total;
}

template <class T> static void operations()
{
	T *h = static_cast<T *>(mc_alloc_percpu_size(sizeof(T), sizeof(T)));
	T found = 0;

	check(h != nullptr);
	mc_this_cpu_add(h, 3);
	mc_this_cpu_sub(h, 1);
	mc_this_cpu_inc(h);
	mc_this_cpu_dec(h);
	check(sum(h) == 2);
	mc_this_cpu_add_return(h, 1);
	mc_this_cpu_sub_return(h, 1);
	mc_this_cpu_inc_return(h);
	mc_this_cpu_dec_return(h);
	check(sum(h) == 2);
	mc_this_cpu_write(h, 5);
	mc_this_cpu_and(h, 4);
	mc_this_cpu_or(h, 1);
	(void)mc_this_cpu_read(h);
	(void)*mc_this_cpu_ptr(h);
	(void)mc_this_cpu_xchg(h, 7);
	(void)mc_this_cpu_cmpxchg(h, 7, 8);
	while (!mc_this_cpu_try_cmpxchg(h, &found, 9))
		;
	check(sum(h) >= 9);
	mc_free_percpu(h);
}

int main()
{
	void **pointer = mc_alloc_percpu(void *);
	mc_counter c, many[2];

	operations<std::uint64_t>();
	operations<std::int32_t>();
	operations<std::int16_t>();
	operations<signed char>();
	mc_this_cpu_write(pointer, &c);
	(void)mc_this_cpu_xchg(pointer, nullptr);
	mc_free_percpu(pointer);
	check(mc_static_percpu_init(&shared_hits) == 0);
	mc_this_cpu_inc(mc_static_percpu(&shared_hits));
	mc_this_cpu_inc(mc_static_percpu(&own_hits));
	check(sum(mc_static_percpu(&shared_hits)) == 1 && sum(mc_static_percpu(&own_hits)) == 1);

	check(mc_counter_init(&c, 10) == 0 && mc_counter_init_many(many, 2, 0) == 0);
	mc_counter_add(&c, 2);
	mc_counter_add_batch(&c, 2, 3);
	mc_counter_add_local(&c, 1);
	mc_counter_sub(&c, 1);
	mc_counter_sub_local(&c, 1);
	mc_counter_inc(&c);
	mc_counter_dec(&c);
	check(mc_counter_initialized(&c) && mc_counter_sum(&c) == 13);
	check(mc_counter_sum_positive(&c) == 13 && mc_counter_compare(&c, 12) == 1);
	check(mc_counter_limited_add(&c, 14, 1) && !mc_counter_limited_add(&c, 14, 1));
	mc_counter_set(&c, -1);
	check(mc_counter_read(&c) == -1 && mc_counter_read_positive(&c) == 0);
	mc_counter_destroy(&c);
	mc_counter_destroy_many(many, 2);
	return 0;
}

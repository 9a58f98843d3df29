// SPDX-License-Identifier: MIT
/* omp.c - OpenMP's view of the machine; built with libgomp and with libomp by clients/compiled.py.
 */
#include <omp.h>
#include <sched.h>
#include <stdio.h>

int main(void)
{
	int wrong = 0;

	printf("procs %d places %d\n", omp_get_num_procs(), omp_get_num_places());
#pragma omp parallel num_threads(8) reduction(+ : wrong)
	{
		int place = omp_get_place_num(), n = omp_get_place_num_procs(place), ids[1024],
		    cpu = sched_getcpu();

		wrong = 1;
		if (n <= 1024) {
			omp_get_place_proc_ids(place, ids);
			for (int i = 0; i < n; i++)
				if (ids[i] == cpu)
					wrong = 0;
		}
#pragma omp critical
		printf("thread %d place %d of %d CPUs, on CPU %d\n", omp_get_thread_num(), place, n, cpu);
	}
	printf("outside of their place %d\n", wrong);
	return 0;
}

// SPDX-License-Identifier: MIT
/*
 * topology_preset_cpu.c - the processor of each preset, as the first block of its /proc/cpuinfo;
 * the renderer writes the numbers that follow from the topology into each CPU's copy. Called by
 * topology_preset.c.
 *
 * Source: published /proc/cpuinfo of such machines, flags that depend on the kernel's version left
 * out.
 */
#include "topology_priv.h"

#define ARM_BLOCK(mips, features, implementer, variant, part, revision) \
	"processor\t: 0\nBogoMIPS\t: " mips "\nFeatures\t: " features \
	"\nCPU implementer\t: " implementer "\nCPU architecture: 8\nCPU variant\t: " variant \
	"\nCPU part\t: " part "\nCPU revision\t: " revision "\n\n"

#define ARM_V8_2 \
	"fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"

#define X86_BLOCK(vendor, family, model, name, stepping, microcode, mhz, cache, level, flags, \
		  mips, line) \
	"processor\t: 0\nvendor_id\t: " vendor "\ncpu family\t: " family "\nmodel\t\t: " model \
	"\nmodel name\t: " name "\nstepping\t: " stepping "\nmicrocode\t: " microcode \
	"\ncpu MHz\t\t: " mhz "\ncache size\t: " cache \
	" KB\nphysical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\napicid\t\t: 0\ninitial apicid\t: 0\n" \
	"fpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: " level \
	"\nwp\t\t: yes\nflags\t\t: " flags \
	"\nbugs\t\t: spectre_v1 spectre_v2 spec_store_bypass\nbogomips\t: " mips "\n" line \
	"clflush size\t: 64\ncache_alignment\t: 64\naddress sizes\t: 52 bits physical, 57 bits virtual\n" \
	"power management:\n\n"

#define X86_COMMON \
	"fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx " \
	"fxsr sse sse2 ht syscall nx pdpe1gb rdtscp lm constant_tsc rep_good nopl xtopology " \
	"nonstop_tsc cpuid aperfmperf pni pclmulqdq monitor ssse3 fma cx16 pcid sse4_1 sse4_2 " \
	"x2apic movbe popcnt aes xsave avx f16c rdrand lahf_lm abm 3dnowprefetch fsgsbase bmi1 " \
	"avx2 smep bmi2 erms invpcid avx512f avx512dq rdseed adx smap avx512ifma clflushopt " \
	"clwb avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec xgetbv1 xsaves avx512_bf16 " \
	"avx512vbmi umip pku ospke avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni avx512_bitalg " \
	"avx512_vpopcntdq la57 rdpid fsrm"

const char topo_cpu_cortex_a76[] = ARM_BLOCK("108.00", ARM_V8_2, "0x41", "0x4", "0xd0b", "1");
const char topo_cpu_neoverse_n1[] = ARM_BLOCK("50.00", ARM_V8_2 " ssbs", "0x41", "0x3", "0xd0c", "1");
const char topo_cpu_ampereone[] = ARM_BLOCK(
	"2000.00",
	"fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 "
	"sm3 sm4 asimddp sha512 asimdfhm uscat ilrcpc flagm ssbs sb paca pacg dcpodp flagm2 frint "
	"i8mm bf16 rng bti ecv",
	"0xc0", "0x0", "0xac3", "0");
const char topo_cpu_epyc_9654[] = X86_BLOCK(
	"AuthenticAMD", "25", "17", "AMD EPYC 9654 96-Core Processor", "1", "0xa101148", "2400.000",
	"1024", "16",
	X86_COMMON
	" mmxext fxsr_opt svm cmp_legacy sse4a misalignsse topoext perfctr_core clzero wbnoinvd",
	"4792.50", "TLB size\t: 3584 4K pages\n");
const char topo_cpu_xeon_8480[] = X86_BLOCK(
	"GenuineIntel", "6", "143", "Intel(R) Xeon(R) Platinum 8480+", "8", "0x2b000603",
	"2000.000", "107520", "32",
	X86_COMMON
	" dtes64 vmx tsc_deadline_timer waitpkg cldemote movdiri movdir64b amx_bf16 avx512_fp16 amx_tile amx_int8",
	"4000.00", "");

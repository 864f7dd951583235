#pragma once
// Static probes for tracers (USDT, provider "stillpoint"): an instruction that does nothing, and a note in the file that says where it
// is and where its arguments are. They cost that instruction; docs/guide/watching.md lists them. Without sys/sdt.h at build time there
// are no probes.

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define STILLPOINT_PROBE1(name, first) DTRACE_PROBE1(stillpoint, name, first)
#define STILLPOINT_PROBE2(name, first, second) DTRACE_PROBE2(stillpoint, name, first, second)
#define STILLPOINT_PROBE3(name, first, second, third) DTRACE_PROBE3(stillpoint, name, first, second, third)
#else
#define STILLPOINT_PROBE1(name, first) static_cast<void>(first)
#define STILLPOINT_PROBE2(name, first, second) (static_cast<void>(first), static_cast<void>(second))
#define STILLPOINT_PROBE3(name, first, second, third) (static_cast<void>(first), static_cast<void>(second), static_cast<void>(third))
#endif

#pragma once
// The instruction set of this build. The only place above the CPU's own files that asks.

#include "arch/arch.hpp"

#if defined(__x86_64__)
#include "arch/x86_64.hpp"
namespace stillpoint::arch {
using Native = X86_64;
}
#elif defined(__aarch64__)
#include "arch/aarch64.hpp"
namespace stillpoint::arch {
using Native = AArch64;
}
#else
#error "Stillpoint runs on x86-64 and AArch64; another CPU needs a model of arch::Arch"
#endif

static_assert(stillpoint::arch::Arch<const stillpoint::arch::Native>);

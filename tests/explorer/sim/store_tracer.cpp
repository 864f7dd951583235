#include "sim/store_tracer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

#include "core/units.hpp"
#include "media/errno_text.hpp"
#include "sim/trace.hpp"
#include "os/service_thread.hpp"

/// glibc's own name for sigaction, which neither an interposer nor a sanitizer replaces.
extern "C" int __sigaction(int, const struct sigaction*, struct sigaction*) noexcept;

namespace stillpoint::sim {

namespace {

struct Range {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uint64_t> size{0};  ///< 0: forgotten
    std::uint64_t offset = 0;
    std::byte* writable = nullptr;
};

constexpr std::size_t ranges_max = 256;
constinit std::array<Range, ranges_max> ranges{};
constinit std::atomic<bool> locked{false};

void lock() noexcept
{
    while (locked.exchange(true, std::memory_order_acquire)) {
        sched_yield();
    }
}
void unlock() noexcept { locked.store(false, std::memory_order_release); }

const Range* range_of(std::uintptr_t address) noexcept
{
    for (const Range& range : ranges) {
        const std::uint64_t size = range.size.load(std::memory_order_acquire);
        if (address - range.begin.load(std::memory_order_relaxed) < size) {
            return &range;
        }
    }
    return nullptr;
}

}  // namespace

std::uint64_t traced_offset(std::uintptr_t address) noexcept
{
    const Range* const range = range_of(address);
    return range != nullptr ? range->offset + (address - range->begin.load(std::memory_order_relaxed)) : UINT64_MAX;
}

BetweenTracedStores::BetweenTracedStores() noexcept { lock(); }
BetweenTracedStores::~BetweenTracedStores() { unlock(); }

void forget_traced(const std::byte* writable_begin, std::uint64_t size) noexcept
{
    const BetweenTracedStores alone;
    for (Range& range : ranges) {
        if (range.writable >= writable_begin && range.writable < writable_begin + size) {
            range.size.store(0, std::memory_order_relaxed);
        }
    }
}

#if defined(__x86_64__)

namespace {

constexpr std::size_t instruction_bytes_max = 15;
constexpr std::size_t line_bytes = 64;
constexpr unsigned char gs_prefix = 0x65;
constexpr greg_t trap_flag = 1 << 8;
constexpr greg_t direction_flag = 1 << 10;
/// A store of one instruction changes bytes this far round the address of its fault.
constexpr std::uint64_t bytes_before = 64;
constexpr std::uint64_t bytes_behind = 128;

/// Where single instructions are executed: one page, seen twice.
struct Scratch {
    unsigned char* writable = nullptr;
    unsigned char* executable = nullptr;
};
Scratch scratch;

struct sigaction previous_fault;
struct sigaction previous_trap;

/// Bytes of a range as they were before a step.
struct Before {
    const Range* range;
    std::uint64_t begin;  ///< in the range
    std::uint64_t size;
    std::array<std::byte, bytes_before + bytes_behind> bytes;
};

/// The step that is being made. Under the lock, from the fault to the trap.
struct Step {
    std::atomic<pid_t> thread{0};  ///< 0: none
    Before before;
    greg_t instruction;
    greg_t shift_of_rdi;  ///< not 0: the instruction was not moved
    std::uint64_t signals;
};
Step step;

/// The kernel's value for this thread's base of GS. initial-exec: a handler must not allocate.
constinit thread_local std::uint64_t base_of_gs [[gnu::tls_model("initial-exec")]] = 0;

[[noreturn]] void give_up(const char* why) noexcept
{
    static_cast<void>(!write(STDERR_FILENO, why, std::strlen(why)));
    abort();
}

void keep(Before& before, const Range& range, std::uint64_t begin, std::uint64_t size) noexcept
{
    before.range = &range;
    before.begin = begin;
    before.size = size;
    std::memcpy(before.bytes.data(), range.writable + begin, size);
}

/// One event for the bytes that have changed, with what lies between them: words of it may land in any order.
void record_change(const Before& before) noexcept
{
    const std::byte* const now = before.range->writable + before.begin;
    std::uint64_t first = 0;
    std::uint64_t last = before.size;
    while (first < last && now[first] == before.bytes[first]) {
        ++first;
    }
    while (last > first && now[last - 1] == before.bytes[last - 1]) {
        --last;
    }
    if (first != last) {
        record(EventKind::store, before.range->offset + before.begin + first, now + first, last - first);
    }
}

/// movs and stos: their target is addressed by ES:RDI, which no prefix shifts.
struct StringInstruction {
    std::size_t length = 0;  ///< 0: it is another one
    std::size_t width = 4;
    bool moves = false;
    bool repeats = false;
    bool short_addresses = false;
};

StringInstruction string_instruction(const unsigned char* code, std::size_t size) noexcept
{
    StringInstruction found;
    for (std::size_t at = 0; at < size; ++at) {
        const unsigned char byte = code[at];
        if (byte == 0xf2 || byte == 0xf3) {
            found.repeats = true;
        } else if (byte == 0x67) {
            found.short_addresses = true;
        } else if (byte == 0x66) {
            found.width = 2;
        } else if ((byte & 0xf0u) == 0x40) {
            found.width = (byte & 8u) != 0 ? 8 : found.width;
        } else if (byte == 0xa4 || byte == 0xa5 || byte == 0xaa || byte == 0xab) {
            found.moves = byte < 0xa8;
            found.width = (byte & 1u) != 0 ? found.width : 1;
            found.length = at + 1;
            break;
        } else if (byte != 0x26 && byte != 0x2e && byte != 0x36 && byte != 0x3e) {
            break;
        }
    }
    return found;
}

/// Executes as much of it as lies in the range, one event a line. False: it must be stepped.
bool execute(const StringInstruction& string, const Range& range, greg_t* registers) noexcept
{
    const auto begin = static_cast<std::uintptr_t>(registers[REG_RDI]) - range.begin.load(std::memory_order_relaxed);
    const std::uint64_t size = range.size.load(std::memory_order_relaxed);
    if (string.short_addresses || (registers[REG_EFL] & direction_flag) != 0 || begin >= size) {
        return false;
    }
    const std::uint64_t wanted = string.repeats ? static_cast<std::uint64_t>(registers[REG_RCX]) : 1;
    const std::uint64_t count = std::min(wanted, (size - begin) / string.width);
    if (count == 0) {
        return false;
    }
    const std::uint64_t end = begin + count * string.width;
    const auto* const source = reinterpret_cast<const std::byte*>(registers[REG_RSI]);
    for (std::uint64_t at = begin; at < end;) {
        const std::uint64_t line_end = std::min((at / line_bytes + 1) * line_bytes + string.width - 1, end);
        const std::uint64_t elements = (line_end - at) / string.width;
        Before before;
        keep(before, range, at, elements * string.width);
        for (std::uint64_t i = 0; i < elements; ++i, at += string.width) {
            const void* const from = string.moves ? static_cast<const void*>(source + (at - begin)) : &registers[REG_RAX];
            std::memmove(range.writable + at, from, string.width);
        }
        record_change(before);
    }
    const auto done = static_cast<greg_t>(count * string.width);
    registers[REG_RDI] += done;
    registers[REG_RSI] += string.moves ? done : 0;
    registers[REG_RCX] -= string.repeats ? static_cast<greg_t>(count) : 0;
    registers[REG_RIP] += count == wanted ? static_cast<greg_t>(string.length) : 0;
    return true;
}

/// Copies the instruction as far as it can be read: what follows it may lie in no memory.
std::size_t read_instruction(std::uintptr_t address, unsigned char* code) noexcept
{
    const std::size_t in_page = std::min<std::size_t>(instruction_bytes_max, page_bytes - address % page_bytes);
    std::memcpy(code, reinterpret_cast<const void*>(address), in_page);
    if (in_page == instruction_bytes_max) {
        return in_page;
    }
    iovec into{code + in_page, instruction_bytes_max - in_page};
    iovec from{reinterpret_cast<void*>(address + in_page), instruction_bytes_max - in_page};
    const ssize_t more = process_vm_readv(getpid(), &into, 1, &from, 1, 0);
    return in_page + (more > 0 ? static_cast<std::size_t>(more) : 0);
}

/// Prepares the step that is made when the handler returns.
void begin_step(const Range& range, std::uintptr_t fault, const unsigned char* code, std::size_t code_size, bool is_string,
                ucontext_t& context) noexcept
{
    greg_t* const registers = context.uc_mcontext.gregs;
    const std::uintptr_t base = range.begin.load(std::memory_order_relaxed);
    const std::uint64_t at = fault - base;
    const std::uint64_t begin = at - std::min(at, bytes_before);
    keep(step.before, range, begin, std::min(at + bytes_behind, range.size.load(std::memory_order_relaxed)) - begin);
    step.instruction = registers[REG_RIP];
    const auto shift = reinterpret_cast<std::uintptr_t>(range.writable) - base;
    step.shift_of_rdi = is_string ? static_cast<greg_t>(shift) : 0;
    if (is_string) {
        registers[REG_RDI] += step.shift_of_rdi;
    } else {
        if (base_of_gs != shift && syscall(SYS_arch_prctl, ARCH_SET_GS, shift) != 0) {
            give_up("store tracer: the kernel does not set the base of GS\n");
        }
        base_of_gs = shift;
        scratch.writable[0] = gs_prefix;
        std::memcpy(scratch.writable + 1, code, code_size);
        registers[REG_RIP] = reinterpret_cast<greg_t>(scratch.executable);
    }
    registers[REG_EFL] |= trap_flag;
    // No other handler runs between the two.
    std::uint64_t blocked = UINT64_MAX;
    for (const int open : {SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE}) {
        blocked &= ~(std::uint64_t{1} << (open - 1));
    }
    std::memcpy(&step.signals, &context.uc_sigmask, sizeof step.signals);
    std::memcpy(&context.uc_sigmask, &blocked, sizeof blocked);
    step.thread.store(gettid(), std::memory_order_relaxed);
}

void end_step(ucontext_t& context) noexcept
{
    greg_t* const registers = context.uc_mcontext.gregs;
    record_change(step.before);
    if (step.shift_of_rdi != 0) {
        registers[REG_RDI] -= step.shift_of_rdi;
    } else {
        const greg_t passed = registers[REG_RIP] - reinterpret_cast<greg_t>(scratch.executable);
        if (passed < 0 || passed > static_cast<greg_t>(instruction_bytes_max) + 1) {
            give_up("store tracer: an instruction that stores into a traced range is a jump too\n");
        }
        registers[REG_RIP] = step.instruction + std::max<greg_t>(passed - 1, 0);
    }
    registers[REG_EFL] &= ~trap_flag;
    std::memcpy(&context.uc_sigmask, &step.signals, sizeof step.signals);
    step.thread.store(0, std::memory_order_relaxed);
}

void pass_on(const struct sigaction& previous, int number, siginfo_t* info, void* context) noexcept
{
    if ((previous.sa_flags & SA_SIGINFO) == 0 && (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)) {
        __sigaction(number, &previous, nullptr);  // A fault happens again when the handler returns.
        if (info->si_code <= 0) {
            syscall(SYS_tgkill, getpid(), gettid(), number);
        }
        return;
    }
    if ((previous.sa_flags & SA_SIGINFO) != 0) {
        previous.sa_sigaction(number, info, context);
    } else {
        previous.sa_handler(number);
    }
}

void on_fault(int number, siginfo_t* info, void* raw_context)
{
    const int saved_errno = errno;
    auto& context = *static_cast<ucontext_t*>(raw_context);
    const auto fault = reinterpret_cast<std::uintptr_t>(info->si_addr);
    constexpr greg_t is_write = 2;
    const bool stores = info->si_code > 0 && (context.uc_mcontext.gregs[REG_ERR] & is_write) != 0;
    if (step.thread.load(std::memory_order_relaxed) == gettid()) {
        give_up("store tracer: an instruction stores into a traced range and out of it\n");
    }
    const Range* const range = stores ? range_of(fault) : nullptr;
    if (range == nullptr) {
        pass_on(previous_fault, number, info, raw_context);
        errno = saved_errno;
        return;
    }
    unsigned char code[instruction_bytes_max];
    const std::size_t code_size = read_instruction(static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]), code);
    const StringInstruction string = string_instruction(code, code_size);
    lock();
    if (string.length != 0 && execute(string, *range, context.uc_mcontext.gregs)) {
        unlock();
    } else {
        begin_step(*range, fault, code, code_size, string.length != 0, context);
    }
    errno = saved_errno;
}

void on_trap(int number, siginfo_t* info, void* raw_context)
{
    const int saved_errno = errno;
    if (step.thread.load(std::memory_order_relaxed) == gettid()) {
        end_step(*static_cast<ucontext_t*>(raw_context));
        unlock();
    } else {
        pass_on(previous_trap, number, info, raw_context);
    }
    errno = saved_errno;
}

Result<void> install(int number, void (*handler)(int, siginfo_t*, void*), struct sigaction& previous)
{
    struct sigaction ours{};
    ours.sa_sigaction = handler;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&ours.sa_mask);
    if (__sigaction(number, &ours, &previous) != 0) {
        return fail(SP_E_IO, errno, "a handler of signal {} cannot be installed: {}", number, describe_errno(errno));
    }
    os::ServiceThread::leave_open(number);  // Their stores fault as well.
    return {};
}

Result<void> prepare()
{
    if (scratch.writable != nullptr) {
        return {};
    }
    const int fd = memfd_create("traced instruction", MFD_CLOEXEC);
    const bool sized = fd >= 0 && ftruncate(fd, page_bytes) == 0;
    void* const writable = sized ? mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    void* const executable = sized ? mmap(nullptr, page_bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) : MAP_FAILED;
    const int error = errno;
    close(fd);
    if (writable == MAP_FAILED || executable == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, error, "no page for traced instructions: {}", describe_errno(error));
    }
    scratch = {static_cast<unsigned char*>(writable), static_cast<unsigned char*>(executable)};
    if (auto installed = install(SIGSEGV, &on_fault, previous_fault); !installed) {
        return installed;
    }
    return install(SIGTRAP, &on_trap, previous_trap);
}

}  // namespace

Result<void> trace_stores(const ObservedRange& range, int fd)
{
    if (range.address >= range.writable) {
        return fail(SP_E_UNSUPPORTED, 0, "stores are traced below the second mapping of their memory only: GS is shifted upwards");
    }
    if (auto prepared = prepare(); !prepared) {
        return prepared;
    }
    const BetweenTracedStores alone;
    Range* const place = std::find_if(ranges.begin(), ranges.end(), [](const Range& other) { return other.size.load() == 0; });
    if (place == ranges.end()) {
        return fail(SP_E_NO_MEMORY, 0, "stores are traced in {} ranges already", ranges_max);
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(range.address);
    if (mmap(range.address, range.size, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, static_cast<off_t>(range.offset)) ==
        MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "{} bytes cannot be mapped: {}", range.size, describe_errno(errno));
    }
    madvise(range.address, range.size, MADV_DONTFORK);
    for (Range& other : ranges) {
        if (other.begin.load() >= begin && other.begin.load() < begin + range.size) {
            other.size.store(0);  // The earlier occupant has left.
        }
    }
    place->begin.store(begin);
    place->offset = range.offset;
    place->writable = range.writable;
    place->size.store(range.size);
    return {};
}

#else

Result<void> trace_stores(const ObservedRange&, int) { return fail(SP_E_UNSUPPORTED, 0, "ordinary stores can be traced on x86-64 only"); }

#endif

}  // namespace stillpoint::sim

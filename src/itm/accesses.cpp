// Reads and writes of the ABI by type [Intel TM ABI 1.1, §5.12]. The variants that know of an earlier access of the same transaction (RaR,
// RaW, WaR, WaW), or of a later one (RfW), do the same as R and W: the engine finds out by itself.

#include "itm/abi.hpp"
#include "itm/transaction.hpp"

namespace {

using stillpoint::itm::Transaction;

using Float = float;
using Double = double;
using LongDouble = long double;
__extension__ using ComplexFloat = _Complex float;
__extension__ using ComplexDouble = _Complex double;
__extension__ using ComplexLongDouble = _Complex long double;

template <class T>
T load(const T* place)
{
    if constexpr (sizeof(T) <= sizeof(std::uint64_t)) {
        return Transaction::running().load(place);
    } else {
        T value;
        Transaction::running().read(place, &value, sizeof value);
        return value;
    }
}

template <class T>
void store(T* place, T value)
{
    if constexpr (sizeof(T) <= sizeof(std::uint64_t)) {
        Transaction::running().store(place, value);
    } else {
        Transaction::running().write(place, &value, sizeof value);
    }
}

}  // namespace

#define STILLPOINT_ITM_ACCESSES(NAME, TYPE)                                                                                                \
    STILLPOINT_ITM_API TYPE _ITM_R##NAME(const TYPE* place) { return load(place); }                                                        \
    STILLPOINT_ITM_API TYPE _ITM_RaR##NAME(const TYPE* place) { return load(place); }                                                      \
    STILLPOINT_ITM_API TYPE _ITM_RaW##NAME(const TYPE* place) { return load(place); }                                                      \
    STILLPOINT_ITM_API TYPE _ITM_RfW##NAME(const TYPE* place) { return load(place); }                                                      \
    STILLPOINT_ITM_API void _ITM_W##NAME(TYPE* place, TYPE value) { store(place, value); }                                                 \
    STILLPOINT_ITM_API void _ITM_WaR##NAME(TYPE* place, TYPE value) { store(place, value); }                                               \
    STILLPOINT_ITM_API void _ITM_WaW##NAME(TYPE* place, TYPE value) { store(place, value); }                                               \
    STILLPOINT_ITM_API void _ITM_L##NAME(TYPE* place) { Transaction::running().keep_own(place, sizeof *place); }

STILLPOINT_ITM_ACCESSES(U1, std::uint8_t)
STILLPOINT_ITM_ACCESSES(U2, std::uint16_t)
STILLPOINT_ITM_ACCESSES(U4, std::uint32_t)
STILLPOINT_ITM_ACCESSES(U8, std::uint64_t)
STILLPOINT_ITM_ACCESSES(F, Float)
STILLPOINT_ITM_ACCESSES(D, Double)
STILLPOINT_ITM_ACCESSES(E, LongDouble)
STILLPOINT_ITM_ACCESSES(CF, ComplexFloat)
STILLPOINT_ITM_ACCESSES(CD, ComplexDouble)
STILLPOINT_ITM_ACCESSES(CE, ComplexLongDouble)

#if defined(__x86_64__)
using Vector64 = float __attribute__((vector_size(8)));
using Vector128 = float __attribute__((vector_size(16)));
using Vector256 = float __attribute__((vector_size(32)));
STILLPOINT_ITM_ACCESSES(M64, Vector64)
STILLPOINT_ITM_ACCESSES(M128, Vector128)

// Values of 256 bits pass through registers that only AVX has. The code is called by programs that were compiled for it.
#define STILLPOINT_ITM_READ_256(NAME)                                                                                                      \
    STILLPOINT_ITM_API __attribute__((target("avx"))) Vector256 _ITM_##NAME(const Vector256* place)                                        \
    {                                                                                                                                      \
        Vector256 value;                                                                                                                   \
        read_256(place, &value);                                                                                                           \
        return value;                                                                                                                      \
    }
#define STILLPOINT_ITM_WRITE_256(NAME)                                                                                                     \
    STILLPOINT_ITM_API __attribute__((target("avx"))) void _ITM_##NAME(Vector256* place, Vector256 value) { write_256(place, &value); }

namespace {

[[gnu::noinline]] void read_256(const Vector256* place, Vector256* value) { Transaction::running().read(place, value, sizeof *value); }
[[gnu::noinline]] void write_256(Vector256* place, const Vector256* value) { Transaction::running().write(place, value, sizeof *value); }

}  // namespace

STILLPOINT_ITM_READ_256(RM256)
STILLPOINT_ITM_READ_256(RaRM256)
STILLPOINT_ITM_READ_256(RaWM256)
STILLPOINT_ITM_READ_256(RfWM256)
STILLPOINT_ITM_WRITE_256(WM256)
STILLPOINT_ITM_WRITE_256(WaRM256)
STILLPOINT_ITM_WRITE_256(WaWM256)
STILLPOINT_ITM_API void _ITM_LM256(Vector256* place) { Transaction::running().keep_own(place, sizeof *place); }
#endif

/// Memory of the program's own of any size.
STILLPOINT_ITM_API void _ITM_LB(void* place, std::size_t bytes) { Transaction::running().keep_own(place, bytes); }

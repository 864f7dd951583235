// Every function of the ABI, called by its name: also those that GCC 12 does not emit.

#include <complex>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <string>
#include <thread>

#include "itm_functions.hpp"
#include "pool_fixture.hpp"

namespace {

class Abi : public InBothMemories {};
STILLPOINT_IN_BOTH_MEMORIES(Abi);

template <class Function>
Function* function(const std::string& name)
{
    auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name.c_str()));
    EXPECT_NE(found, nullptr) << name;
    return found;
}

/// Runs body() as a transaction. False: it was cancelled.
template <class Body>
[[gnu::noinline]] bool run(std::uint32_t properties, Body body)
{
    if ((_ITM_beginTransaction(properties) & itm::skipped) != 0) {
        return false;
    }
    body();
    _ITM_commitTransaction();
    return true;
}

template <class T>
void check_type(InBothMemories& /*test*/, T* place, const std::string& type, T one, T other)
{
    for (const char* const write : {"W", "WaR", "WaW"}) {
        auto* const store = function<void(T*, T)>(std::string("_ITM_") + write + type);
        for (const char* const read : {"R", "RaR", "RaW", "RfW"}) {
            auto* const load = function<T(const T*)>(std::string("_ITM_") + read + type);
            T before{};
            T after{};
            std::memcpy(place, &one, sizeof one);
            EXPECT_TRUE(run(itm::instrumented | itm::no_abort, [&] {
                before = load(place);
                store(place, other);
                after = load(place);
            }));
            EXPECT_EQ(std::memcmp(&before, &one, sizeof one), 0) << read << type;
            EXPECT_EQ(std::memcmp(&after, &other, sizeof one), 0) << write << type;
            EXPECT_EQ(std::memcmp(place, &other, sizeof one), 0) << write << type;
        }
    }
    // The program's own memory: kept, and restored.
    auto* const keep = function<void(T*)>("_ITM_L" + type);
    std::memcpy(place, &one, sizeof one);
    EXPECT_FALSE(run(itm::instrumented, [&] {
        keep(place);
        std::memcpy(place, &other, sizeof other);
        _ITM_abortTransaction(itm::user_abort);
    }));
    EXPECT_EQ(std::memcmp(place, &one, sizeof one), 0) << 'L' << type;
}

struct State {
    std::uint8_t u1;
    std::uint16_t u2;
    std::uint32_t u4;
    std::uint64_t u8;
    float f;
    double d;
    __extension__ _Complex float cf;
    __extension__ _Complex double cd;
    float m64 __attribute__((vector_size(8)));
    float m128 __attribute__((vector_size(16)));
    char bytes[300];
    std::uint64_t last;
};

TEST_P(Abi, ValuesOfEveryTypeAreReadWrittenAndKept)
{
    using Vector64 = float __attribute__((vector_size(8)));
    using Vector128 = float __attribute__((vector_size(16)));
    __extension__ using ComplexFloat = _Complex float;
    __extension__ using ComplexDouble = _Complex double;
    auto& state = root<State>("state");
    check_type<std::uint8_t>(*this, &state.u1, "U1", 1, 0xfe);
    check_type<std::uint16_t>(*this, &state.u2, "U2", 1, 0xfedc);
    check_type<std::uint32_t>(*this, &state.u4, "U4", 1, 0xfedcba98);
    check_type<std::uint64_t>(*this, &state.u8, "U8", 1, 0xfedcba9876543210);
    check_type<float>(*this, &state.f, "F", 1, 2.5F);
    check_type<double>(*this, &state.d, "D", 1, 2.5);
    check_type<ComplexFloat>(*this, &state.cf, "CF", 1, 2.5F);
    check_type<ComplexDouble>(*this, &state.cd, "CD", 1, 2.5);
#if defined(__x86_64__)
    check_type<Vector64>(*this, &state.m64, "M64", Vector64{1, 2}, Vector64{3, 4});
    check_type<Vector128>(*this, &state.m128, "M128", Vector128{1, 2, 3, 4}, Vector128{5, 6, 7, 8});
#endif
}

TEST_P(Abi, CopiesOfEveryKindCopy)
{
    auto& state = root<State>("state");
    using Copy = void(void*, const void*, std::size_t);
    const char text[] = "a text of more than one word";
    for (const std::string name : {"memcpy", "memmove"}) {
        for (const std::string from : {"Rn", "Rt", "RtaR", "RtaW"}) {
            for (const std::string to : {"Wn", "Wt", "WtaR", "WtaW"}) {
                if (from == "Rn" && to == "Wn") {
                    continue;  // That is memcpy.
                }
                auto* const copy = function<Copy>("_ITM_" + name + from + to);
                char own[64] = {};
                const bool is_read_shared = from != "Rn";
                std::memset(state.bytes, 0, sizeof state.bytes);
                std::memcpy(is_read_shared ? state.bytes + 3 : own, text, sizeof text);
                char* const target = to == "Wn" ? own : state.bytes + 101;
                EXPECT_TRUE(
                    run(itm::instrumented | itm::no_abort, [&] { copy(target, is_read_shared ? state.bytes + 3 : own, sizeof text); }));
                EXPECT_STREQ(target, text) << name << from << to;
            }
        }
    }
    for (const std::string name : {"W", "WaR", "WaW"}) {
        auto* const fill = function<void(void*, int, std::size_t)>("_ITM_memset" + name);
        std::memset(state.bytes, 0, sizeof state.bytes);
        EXPECT_TRUE(run(itm::instrumented | itm::no_abort, [&] { fill(state.bytes + 5, 'x', 9); }));
        EXPECT_STREQ(state.bytes + 5, "xxxxxxxxx") << name;
    }
}

TEST_P(Abi, BytesOfTheProgramsOwnAreRestored)
{
    auto& state = root<State>("state");
    std::strcpy(state.bytes, "before");
    int rounds = 0;
    const bool committed = run(itm::instrumented, [&] {
        _ITM_LB(state.bytes, 7);
        std::strcpy(state.bytes, "during");
        _ITM_LB(&rounds, sizeof rounds);
        ++rounds;
        _ITM_abortTransaction(itm::user_abort);
    });
    EXPECT_FALSE(committed);
    EXPECT_STREQ(state.bytes, "before");
    EXPECT_EQ(rounds, 0);
}

/// A compiler that is wrong about a transaction: GCC says of some that they only read.
TEST_P(Abi, ATransactionThatOnlyReadsMayWriteAllTheSame)
{
    auto& state = root<State>("state");
    EXPECT_TRUE(run(itm::instrumented | itm::no_abort | itm::reads_only, [&] {
        _ITM_WU8(&state.u8, _ITM_RU8(&state.u8) + 1);
        _ITM_WU8(&state.last, _ITM_RU8(&state.u8) + 1);
    }));
    EXPECT_EQ(state.u8, 1U);
    EXPECT_EQ(state.last, 2U);
    restart();
    EXPECT_EQ(root<State>("state").last, 2U);
}

TEST_P(Abi, IdsOfTransactionsAndThreadsDiffer)
{
    std::set<std::uint32_t> ids;
    std::set<int> threads{_ITM_getThreadnum()};
    for (int i = 0; i < 3; ++i) {
        run(itm::instrumented | itm::no_abort, [&] { ids.insert(_ITM_getTransactionId()); });
        std::thread([&] { threads.insert(_ITM_getThreadnum()); }).join();
    }
    EXPECT_EQ(ids.size(), 3U);
    EXPECT_EQ(ids.count(_ITM_getTransactionId()), 0U);
    EXPECT_EQ(threads.size(), 4U);
}

TEST_P(Abi, AChangeOfModeMakesATransactionIrrevocable)
{
    auto& state = root<State>("state");
    std::uint32_t before = 0;
    std::uint32_t after = 0;
    EXPECT_TRUE(run(itm::instrumented, [&] {
        before = _ITM_inTransaction();
        _ITM_WU8(&state.u8, 5);
        _ITM_changeTransactionMode(0);
        after = _ITM_inTransaction();
        state.last = state.u8;
    }));
    EXPECT_EQ(before, 1U);
    EXPECT_EQ(after, 2U);
    EXPECT_EQ(state.last, 5U);
}

TEST(AbiFacts, TheLibrarySaysWhatItIs)
{
    EXPECT_EQ(_ITM_versionCompatible(90), 1);
    EXPECT_EQ(_ITM_versionCompatible(91), 0);
    EXPECT_EQ(std::string(_ITM_libraryVersion()).rfind("Stillpoint ", 0), 0U);
    _ITM_dropReferences(nullptr, 0);
}

}  // namespace

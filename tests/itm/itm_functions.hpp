#pragma once
// The functions of the ABI that tests call by themselves.

#include <cstddef>
#include <cstdint>

namespace itm {
constexpr std::uint32_t instrumented = 0x1;   ///< a property: there is code for it
constexpr std::uint32_t no_abort = 0x8;       ///< a property
constexpr std::uint32_t reads_only = 0x4000;  ///< a property
constexpr std::uint32_t restored = 0x8;       ///< an action
constexpr std::uint32_t skipped = 0x10;       ///< an action
constexpr std::uint32_t user_abort = 1;
constexpr std::uint32_t user_retry = 2;
}  // namespace itm

extern "C" {
[[gnu::returns_twice]] std::uint32_t _ITM_beginTransaction(std::uint32_t properties, ...);
void _ITM_commitTransaction(void);
void _ITM_abortTransaction(std::uint32_t reason);
void _ITM_changeTransactionMode(std::uint32_t mode);
std::uint32_t _ITM_inTransaction(void);
std::uint32_t _ITM_getTransactionId(void);
int _ITM_getThreadnum(void);
int _ITM_versionCompatible(int version);
const char* _ITM_libraryVersion(void);
void _ITM_addUserCommitAction(void (*action)(void*), std::uint64_t transaction_id, void* argument);
void _ITM_addUserUndoAction(void (*action)(void*), void* argument);
void _ITM_dropReferences(void* place, std::size_t bytes);
void* _ITM_cxa_allocate_exception(std::size_t bytes) noexcept;
void _ITM_cxa_free_exception(void* object) noexcept;
void _ITM_cxa_throw(void* object, void* type, void (*destructor)(void*));
void* _ITM_cxa_begin_catch(void* exception) noexcept;
void _ITM_cxa_end_catch(void);
std::uint64_t _ITM_RU8(const std::uint64_t* place);
void _ITM_WU8(std::uint64_t* place, std::uint64_t value);
void _ITM_WU4(std::uint32_t* place, std::uint32_t value);
void _ITM_LU8(std::uint64_t* place);
void _ITM_LB(void* place, std::size_t bytes);
}

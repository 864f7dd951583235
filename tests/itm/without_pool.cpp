// The functions of Stillpoint that libstillpoint-itm calls, without a pool: for tests of the library on another CPU.

#include <cstdlib>
#include <map>
#include <string>

#include "stillpoint/spht.h"
#include "stillpoint/stillpoint.h"

namespace {

std::map<std::string, void*> roots;

/// There is no pool, so no transaction of the engine is begun.
[[noreturn]] void must_not_be_called() { std::abort(); }

}  // namespace

extern "C" {
sp_start sp_start_kind(void) { return SP_START_VOLATILE; }
const char* sp_last_error(void) { return "no pool"; }
int sp_open(const char* /*path*/, const char* /*options*/) { return SP_E_UNSUPPORTED; }
int sp_close(void) { return SP_E_NOT_OPEN; }
void* sp_root(const char* handle, size_t bytes)
{
    void*& root = roots[handle];
    root = root != nullptr ? root : std::calloc(1, bytes);
    return root;
}
int sp_root_delete(const char* handle)
{
    std::free(roots[handle]);
    roots.erase(handle);
    return SP_OK;
}
void* sp_malloc(size_t bytes) { return std::malloc(bytes); }
void* sp_aligned_alloc(size_t alignment_bytes, size_t bytes)
{
    return std::aligned_alloc(alignment_bytes, (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
}
void sp_free(void* block) { std::free(block); }
int sp_heap_stats(sp_heap_statistics* /*out*/) { return SP_E_NOT_OPEN; }
sp_spht_transaction* sp_spht_current(void) { return nullptr; }
sp_spht_transaction* sp_spht_begin(unsigned /*flags*/, int* /*error*/) { must_not_be_called(); }
int sp_spht_commit(sp_spht_transaction* /*transaction*/) { must_not_be_called(); }
int sp_spht_abort(sp_spht_transaction* /*transaction*/, int /*tries_again*/) { must_not_be_called(); }
int sp_spht_read_word(sp_spht_transaction* /*transaction*/, const uint64_t* /*place*/, uint64_t* /*value*/) { must_not_be_called(); }
int sp_spht_write_word(sp_spht_transaction* /*transaction*/, uint64_t* /*place*/, uint64_t /*value*/, uint64_t /*mask*/)
{
    must_not_be_called();
}
int sp_spht_read(sp_spht_transaction* /*transaction*/, const void* /*place*/, void* /*value*/, size_t /*bytes*/) { must_not_be_called(); }
int sp_spht_write(sp_spht_transaction* /*transaction*/, void* /*place*/, const void* /*value*/, size_t /*bytes*/) { must_not_be_called(); }
void* sp_spht_aligned_alloc(sp_spht_transaction* /*transaction*/, size_t /*alignment_bytes*/, size_t /*bytes*/) { must_not_be_called(); }
int sp_spht_free(sp_spht_transaction* /*transaction*/, void* /*block*/) { must_not_be_called(); }
int sp_spht_run(int (* /*body*/)(sp_spht_transaction* transaction, void* argument), void* /*argument*/, unsigned /*flags*/)
{
    must_not_be_called();
}
}

#include "transactional_field.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <vector>

namespace stillpoint::explorer {

namespace {

struct Range {
    void* place;
    std::size_t bytes;
};
std::vector<Range> stored_plainly;

void check(int code)
{
    if (code != SP_OK) {
        throw TransactionRefused();
    }
}

}  // namespace

void begin_transaction()
{
    stored_plainly.clear();
    int code = SP_OK;
    static_cast<void>(sp_spht_begin(0, &code));
    check(code);
}

void commit_transaction()
{
    for (const Range& range : stored_plainly) {
        copy_in_transaction(range.place, range.place, range.bytes);  // The transaction's own words there stay.
    }
    check(sp_spht_commit(sp_spht_current()));
}

std::byte* allocate_in_transaction(std::size_t bytes)
{
    void* const block = sp_spht_malloc(sp_spht_current(), bytes);
    if (block == nullptr) {
        throw std::bad_alloc();
    }
    return static_cast<std::byte*>(block);
}

void free_in_transaction(void* block) { check(sp_spht_free(sp_spht_current(), block)); }

void read_in_transaction(const void* place, void* value, std::size_t bytes)
{
    if (sp_spht_transaction* const transaction = sp_spht_current(); transaction != nullptr) {
        check(sp_spht_read(transaction, place, value, bytes));
    } else {
        std::memcpy(value, place, bytes);
    }
}

void write_in_transaction(void* place, const void* value, std::size_t bytes)
{
    check(sp_spht_write(sp_spht_current(), place, value, bytes));
}

void copy_in_transaction(void* to, const void* from, std::size_t bytes)
{
    std::array<std::byte, 4096> part;
    for (std::size_t done = 0; done < bytes; done += part.size()) {
        const std::size_t here = std::min(bytes - done, part.size());
        read_in_transaction(static_cast<const std::byte*>(from) + done, part.data(), here);
        write_in_transaction(static_cast<std::byte*>(to) + done, part.data(), here);
    }
}

void write_what_is_there(const void* place, std::size_t bytes) { stored_plainly.push_back({const_cast<void*>(place), bytes}); }

}  // namespace stillpoint::explorer

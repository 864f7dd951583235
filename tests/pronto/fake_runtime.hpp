#pragma once
// The functions of pronto.h and of stillpoint.h that pronto.hpp calls, in ordinary memory: objects are kept by name, operations in a list
// that can be run again on another object. For tests of the header alone; threads: any.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stillpoint/pronto.h"

namespace fake_runtime {

struct Entry {
    std::string method;
    std::string signature;
    std::vector<std::uint64_t> words;
    std::size_t bytes;
};

/// The operations committed on the object, in order.
std::vector<Entry> log_of(const std::string& name);

/// Another object, made as the named one was, on which its log was run again. The caller does not destroy it; forget_all() does.
void* replayed(const std::string& name);
/// Runs one entry on an object of the type: what the type's replay function returns.
int replay(const std::string& type, void* object, const std::string& method, const void* arguments, std::size_t bytes);
const sp_pronto_type* type_named(const std::string& name);

/// Makes the next call that can return `code` fail with it, and not do its work.
enum class Call { begin, commit, end, wait_read };
void fail_next(Call call, int code);

unsigned waits_of_readers();
unsigned early_commits();
std::size_t allocated_blocks();
std::size_t blocks_not_freed();

/// Destroys all objects, and forgets names and roots; types stay.
void forget_all();

}  // namespace fake_runtime

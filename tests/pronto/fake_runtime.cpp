#include "fake_runtime.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "stillpoint/stillpoint.h"

namespace fake_runtime {
namespace {

struct Object {
    const sp_pronto_type* type;
    void* memory;
    std::vector<std::uint64_t> constructor_words;
    std::size_t constructor_bytes;
    std::vector<Entry> log;
    bool is_refused = false;
};

/// The content of sp_pronto_operation.
struct Operation {
    Object* object;
    std::uint32_t method;
    bool is_logged;
    bool is_committed;
    bool is_early;
    std::vector<std::uint64_t>* words;
    std::size_t bytes;
    Operation* outer;
};
static_assert(sizeof(Operation) <= sizeof(sp_pronto_operation));

std::recursive_mutex guard;
using Types = std::map<std::string, const sp_pronto_type*, std::less<>>;
/// Types are registered before main, and so before the variables here may be made.
Types& types()
{
    static Types known;
    return known;
}
std::map<std::string, std::unique_ptr<Object>, std::less<>> objects;
std::map<std::string, void*, std::less<>> roots;
std::vector<std::unique_ptr<Object>> again;
std::map<Call, int> failures;
unsigned reader_waits = 0;
unsigned early = 0;
std::size_t allocations = 0;
std::size_t frees = 0;
thread_local std::string last_error;
thread_local Operation* innermost = nullptr;
thread_local bool is_replaying = false;

using Hold = std::lock_guard<std::recursive_mutex>;

int fail(int code, std::string text)
{
    last_error = std::move(text);
    return code;
}

int planned(Call call)
{
    const auto found = failures.find(call);
    if (found == failures.end()) {
        return SP_OK;
    }
    const int code = found->second;
    failures.erase(found);
    return fail(code, "planned failure");
}

/// In front of each object, which stays aligned.
constexpr std::size_t run_bytes = 64;

void* allocate_object(std::size_t bytes)
{
    auto* const block = static_cast<std::byte*>(std::aligned_alloc(64, run_bytes + (bytes + 63) / 64 * 64));
    new (block + run_bytes - sizeof(sp_pronto_run)) sp_pronto_run{1, 1};
    return block + run_bytes;
}
void free_object(void* object) { std::free(static_cast<std::byte*>(object) - run_bytes); }

std::unique_ptr<Object> make(const sp_pronto_type* type, const void* arguments, std::size_t bytes)
{
    auto made = std::make_unique<Object>();
    made->type = type;
    made->constructor_words.resize(bytes / 8 + 1);
    if (bytes != 0) {
        std::memcpy(made->constructor_words.data(), arguments, bytes);
    }
    made->constructor_bytes = bytes;
    made->memory = allocate_object(type->size_bytes);
    try {
        type->construct(made->memory, made->constructor_words.data(), bytes);
    } catch (...) {
        free_object(made->memory);
        throw;
    }
    return made;
}

void unmake(Object& object)
{
    object.type->destroy(object.memory);
    free_object(object.memory);
}

Object* object_at(const void* address)
{
    for (auto& [name, object] : objects) {
        if (object->memory == address) {
            return object.get();
        }
    }
    return nullptr;
}

Operation& content(sp_pronto_operation* operation) { return *reinterpret_cast<Operation*>(operation->words); }

int commit(Operation& operation, bool is_early)
{
    if (!operation.is_logged) {
        return SP_OK;
    }
    const Hold hold(guard);
    if (const int code = planned(Call::commit); code != SP_OK) {
        return code;
    }
    const sp_pronto_method& method = operation.object->type->methods[operation.method];
    operation.object->log.push_back({method.name, method.signature, *operation.words, operation.bytes});
    operation.is_committed = true;
    operation.is_early = is_early;
    early += is_early ? 1U : 0U;
    return SP_OK;
}

}  // namespace

std::vector<Entry> log_of(const std::string& name)
{
    const Hold hold(guard);
    return objects.at(name)->log;
}

int replay(const std::string& type, void* object, const std::string& method, const void* arguments, std::size_t bytes)
{
    const sp_pronto_type& found = *types().at(type);
    for (std::size_t place = 0; place < found.method_count; ++place) {
        if (method == found.methods[place].name) {
            is_replaying = true;
            const int code = found.methods[place].replay(object, arguments, bytes);
            is_replaying = false;
            return code;
        }
    }
    return fail(SP_E_OBJECT_TYPE, "no method " + method);
}

void* replayed(const std::string& name)
{
    const Hold hold(guard);
    Object& object = *objects.at(name);
    auto made = make(object.type, object.constructor_words.data(), object.constructor_bytes);
    for (const Entry& entry : object.log) {
        if (replay(object.type->name, made->memory, entry.method, entry.words.data(), entry.bytes) != SP_OK) {
            std::abort();
        }
    }
    again.push_back(std::move(made));
    return again.back()->memory;
}

const sp_pronto_type* type_named(const std::string& name)
{
    const auto found = types().find(name);
    return found == types().end() ? nullptr : found->second;
}

void fail_next(Call call, int code)
{
    const Hold hold(guard);
    failures[call] = code;
}

unsigned waits_of_readers() { return reader_waits; }
unsigned early_commits() { return early; }
std::size_t allocated_blocks() { return allocations; }
std::size_t blocks_not_freed() { return allocations - frees; }

void forget_all()
{
    const Hold hold(guard);
    for (auto& [name, object] : objects) {
        unmake(*object);
    }
    objects.clear();
    for (auto& object : again) {
        unmake(*object);
    }
    again.clear();
    for (auto& [name, memory] : roots) {
        std::free(memory);
    }
    roots.clear();
    failures.clear();
}

}  // namespace fake_runtime

using namespace fake_runtime;  // The functions below are C's, and in no namespace.

extern "C" {

int sp_pronto_register(const sp_pronto_type* type)
{
    const auto [place, is_new] = types().emplace(type->name, type);
    return is_new || place->second == type ? SP_OK : fail(SP_E_INVALID_ARGUMENT, std::string("another type is named ") + type->name);
}

void* sp_pronto_object(const sp_pronto_type* type, const char* name, unsigned flags, const void* arguments, size_t bytes, int* error)
{
    const Hold hold(guard);
    const auto found = objects.find(name);
    if (found != objects.end()) {
        *error = found->second->type == type ? SP_OK : fail(SP_E_OBJECT_TYPE, std::string(name) + " has another type");
        return *error == SP_OK ? found->second->memory : nullptr;
    }
    if ((flags & SP_PRONTO_MUST_EXIST) != 0) {
        *error = fail(SP_E_HANDLE_MISSING, std::string("no object ") + name);
        return nullptr;
    }
    *error = SP_OK;
    return (objects[name] = make(type, arguments, bytes))->memory;
}

int sp_pronto_delete(const char* name)
{
    const Hold hold(guard);
    const auto found = objects.find(name);
    if (found == objects.end()) {
        return fail(SP_E_HANDLE_MISSING, std::string("no object ") + name);
    }
    unmake(*found->second);
    objects.erase(found);
    return SP_OK;
}

int sp_pronto_is_object(const void* object)
{
    const Hold hold(guard);
    return object_at(object) != nullptr ? 1 : 0;
}

void* sp_pronto_begin(sp_pronto_operation* native, void* object, uint32_t method, size_t bytes, int* error)
{
    const Hold hold(guard);
    *error = planned(Call::begin);
    if (*error != SP_OK) {
        return nullptr;
    }
    Object* const found = object_at(object);
    const bool is_logged = !is_replaying && !(innermost != nullptr && innermost->object == found);
    if (is_logged && (found == nullptr || innermost != nullptr)) {
        *error = fail(SP_E_INVALID_ARGUMENT, "not an object, or inside an operation on another");
        return nullptr;
    }
    if (is_logged && found->is_refused) {
        *error = fail(SP_E_OBJECT_REFUSED, "an operation failed on the object");
        return nullptr;
    }
    auto* const words = new std::vector<std::uint64_t>(bytes / 8 + 1, ~std::uint64_t{0});
    innermost = ::new (native->words) Operation{found, method, is_logged, false, false, words, bytes, innermost};
    return words->data();
}

void sp_pronto_start_logging(sp_pronto_operation*) {}

int sp_pronto_commit(sp_pronto_operation* native) { return commit(content(native), false); }

int sp_pronto_commit_early(sp_pronto_operation* native) { return commit(content(native), true); }

int sp_pronto_end(sp_pronto_operation* native, int by_exception)
{
    const Hold hold(guard);
    Operation& operation = content(native);
    innermost = operation.outer;
    delete operation.words;
    if (!operation.is_logged) {
        return SP_OK;
    }
    if (!operation.is_committed) {
        const std::uint32_t promises = operation.object->type->methods[operation.method].promises;
        if (by_exception != 0 && (promises & SP_PRONTO_UNCHANGED_BY_EXCEPTION) == 0) {
            operation.object->is_refused = true;
        }
        return SP_OK;
    }
    return operation.is_early ? planned(Call::end) : static_cast<int>(SP_OK);
}

int sp_pronto_commit_current(void) { return innermost == nullptr ? static_cast<int>(SP_OK) : commit(*innermost, false); }

int sp_pronto_wait_read(const void*)
{
    const Hold hold(guard);
    ++reader_waits;
    return planned(Call::wait_read);
}

int sp_pronto_inside_operation() { return innermost != nullptr || is_replaying ? 1 : 0; }

void sp_pronto_group_begin() {}
int sp_pronto_group_end(sp_pronto_ticket* ticket)
{
    if (ticket != nullptr) {
        *ticket = {};
    }
    return SP_OK;
}
int sp_pronto_wait_or_defer(const sp_pronto_ticket*) { return SP_OK; }

int sp_pronto_commit_async(sp_pronto_operation* operation, sp_pronto_ticket* ticket)
{
    ticket->object = operation;
    return sp_pronto_commit(operation);
}

int sp_pronto_numbers(const void* object, uint64_t* committed, uint64_t* durable)
{
    const Hold hold(guard);
    const Object* const found = object_at(object);
    if (found == nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, "not an object");
    }
    *committed = *durable = found->log.size();
    return SP_OK;
}

int sp_pronto_snapshot(void) { return SP_OK; }

const char* sp_last_error(void) { return last_error.c_str(); }

void* sp_malloc(size_t size_bytes) { return sp_aligned_alloc(16, size_bytes); }

void* sp_aligned_alloc(size_t alignment_bytes, size_t size_bytes)
{
    if (size_bytes > std::size_t{1} << 40) {
        last_error = "the pool is full";
        return nullptr;
    }
    const Hold hold(guard);
    ++allocations;
    return std::aligned_alloc(alignment_bytes, (size_bytes / alignment_bytes + 1) * alignment_bytes);
}

void sp_free(void* block)
{
    const Hold hold(guard);
    frees += block != nullptr ? 1U : 0U;
    std::free(block);
}

// One pool, the default one, which owns whatever is asked for.
sp_pool* sp_pool_current(void) { return nullptr; }
sp_pool* sp_pool_of(const void*) { return nullptr; }
int sp_pool_use(sp_pool*, sp_pool**) { return SP_E_NOT_OPEN; }

void* sp_root(const char* handle, size_t size_bytes)
{
    const Hold hold(guard);
    void*& found = roots[handle];
    if (found == nullptr) {
        found = std::calloc(1, size_bytes);
    }
    return found;
}

void sp_fase_begin(void) {}
void sp_fase_end(void) {}

}  // extern "C"

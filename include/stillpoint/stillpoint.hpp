#pragma once
// Durable memory for C++: containers by an allocator, named objects with checked types, sections. docs/guide/cpp.md is the guide,
// stillpoint.h the interface below.
//
//   auto& ages = stillpoint::root<stillpoint::map<stillpoint::string, int>>("ages");   // made once, then found
//   stillpoint::atomically([&] { ages["Ada"] = 36; ages["Alan"] = 41; });             // a crash leaves both or neither
//
// For engines with which a section of plain stores is atomic (sp_sections_are_atomic); the others have headers of their own, and root()
// throws there. Headers of the standard library and pointers are used as they are: the pool is mapped at the same address in each process.
// A pool belongs to one standard library: libstdc++ and libc++ lay their containers out differently, and root() tells them apart.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "stillpoint/durable_class.hpp"
#include "stillpoint/memory.hpp"
#include "stillpoint/stillpoint.h"
#include "stillpoint/storable.hpp"

namespace stillpoint {

/// A call of the interface below has failed. `code` is an sp_error.
class error : public std::runtime_error {
public:
    explicit error(int code) : error(code, sp_last_error()) {}
    error(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

// ---- Sections --------------------------------------------------------------------------------------

/// After a crash, all that the thread stores while the section lives is there, or nothing of it. Nests. Other threads see the stores at
/// once: isolation is the locks' job. An exception that leaves the section ends it as a return does: nothing is rolled back.
class [[nodiscard]] section {
public:
    section() noexcept { sp_fase_begin(); }
    section(const section&) = delete;
    section& operator=(const section&) = delete;
    ~section() { sp_fase_end(); }
};

/// body() in a section, and what it returns. Where it throws, what it has stored until then stays. A body that is noexcept ends the
/// program instead, inside the section: the next start finds the state from before it.
template <class Body>
decltype(auto) atomically(Body&& body)
{
    const section whole;
    return std::forward<Body>(body)();
}

/// Waits until the sections that this thread has ended are durable. Throws error; never call it inside a section.
inline void wait_durable()
{
    if (const int code = sp_wait_durable(sp_epoch(), -1); code != SP_OK) {
        throw error(code);
    }
}

/// As wait_durable(), and makes them durable now. Throws error.
inline void checkpoint()
{
    if (const int code = sp_checkpoint(); code != SP_OK) {
        throw error(code);
    }
}

// ---- Memory ----------------------------------------------------------------------------------------

/// Durable memory of the pool that the thread acts on; freed memory finds its pool by its address. Meets the standard's requirements for
/// an allocator. It has no state, since it lies in the pool with its container: all are equal. Of a container that does not lie in durable
/// memory itself the blocks are leaked in a crash. Threads: any. Errors: std::bad_alloc; sp_last_error() says why.
template <class T>
class allocator {
public:
    using value_type = T;

    allocator() noexcept = default;
    template <class Other>
    allocator(const allocator<Other>&) noexcept  // NOLINT(google-explicit-constructor): the requirements ask for it
    {
    }

    [[nodiscard]] T* allocate(std::size_t count)
    {
        detail::check_storable<T>();
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        return static_cast<T*>(detail::allocate_durable(count * sizeof(T), alignof(T)));
    }
    void deallocate(T* block, std::size_t) noexcept { sp_free(block); }

    /// Where containers keep elements in nodes, this sees the element's type.
    template <class Value, class... Arguments>
    void construct(Value* place, Arguments&&... arguments)
    {
        detail::check_storable<Value>();
        ::new (static_cast<void*>(place)) Value(std::forward<Arguments>(arguments)...);
    }

    template <class Other>
    [[nodiscard]] bool operator==(const allocator<Other>&) const noexcept
    {
        return true;
    }
};

/// Hashes as std::hash; strings of every kind alike, so that a durable string is found by a std::string_view.
template <class Key>
struct hash : std::hash<Key> {};
template <class Traits, class Allocator>
struct hash<std::basic_string<char, Traits, Allocator>> {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
};

using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;
template <class T>
using vector = std::vector<T, allocator<T>>;
template <class T>
using deque = std::deque<T, allocator<T>>;
template <class T>
using list = std::list<T, allocator<T>>;
template <class Key, class Value, class Less = std::less<>>
using map = std::map<Key, Value, Less, allocator<std::pair<const Key, Value>>>;
template <class Key, class Less = std::less<>>
using set = std::set<Key, Less, allocator<Key>>;
template <class Key, class Value, class Hash = hash<Key>, class Equal = std::equal_to<>>
using unordered_map = std::unordered_map<Key, Value, Hash, Equal, allocator<std::pair<const Key, Value>>>;
template <class Key, class Hash = hash<Key>, class Equal = std::equal_to<>>
using unordered_set = std::unordered_set<Key, Hash, Equal, allocator<Key>>;

[[nodiscard]] inline bool operator==(const string& one, const std::string& other) noexcept { return one == std::string_view(other); }

/// A durable object of its own, in a block of its own. Throws std::bad_alloc, and what the constructor throws.
template <class T, class... Arguments>
[[nodiscard]] T* make(Arguments&&... arguments)
{
    const section whole;
    allocator<T> memory;
    T* const place = memory.allocate(1);
    try {
        memory.construct(place, std::forward<Arguments>(arguments)...);
    } catch (...) {
        memory.deallocate(place, 1);
        throw;
    }
    return place;
}
/// Ends what make() has made; nullptr is allowed.
template <class T>
void destroy(T* object) noexcept
{
    if (object != nullptr) {
        const section whole;
        object->~T();
        sp_free(const_cast<std::remove_const_t<T>*>(object));
    }
}
struct deleter {
    template <class T>
    void operator()(T* object) const noexcept
    {
        destroy(object);
    }
};
/// Owns what make() has made, and may lie in durable memory itself.
template <class T>
using unique_ptr = std::unique_ptr<T, deleter>;
template <class T, class... Arguments>
[[nodiscard]] unique_ptr<T> make_unique(Arguments&&... arguments)
{
    return unique_ptr<T>(make<T>(std::forward<Arguments>(arguments)...));
}

// ---- Roots -----------------------------------------------------------------------------------------

namespace detail {

/// Lies before the object in the block of its name.
struct RootHeader {
    static constexpr std::uint64_t right_magic = 0x31544f4f52505043;  // "CPPROOT1"
    static constexpr std::size_t name_bytes = 96;

    std::uint64_t magic;
    std::uint64_t size_bytes;
    std::uint64_t alignment_bytes;
    std::uint64_t type_hash;
    char type_name[name_bytes];  ///< for messages; cut off, and ends with a zero
};
static_assert(sizeof(RootHeader) == 128);

/// T::type_name; else T as all compilers of the platform spell it in symbols.
template <class T>
[[nodiscard]] std::string_view type_name()
{
    if constexpr (requires { std::string_view(T::type_name); }) {
        return T::type_name;
    } else {
#ifdef __cpp_rtti
        return typeid(T).name();
#else
        static_assert(sizeof(T) == 0, "a root is checked by the name of its type: compile with RTTI, or give the class a member "
                                      "`static constexpr const char* type_name = \"...\"`");
#endif
    }
}

/// Containers of the same name are laid out differently by these.
inline constexpr std::string_view standard_library =
#if defined(_LIBCPP_VERSION)
    " libc++";
#elif defined(_GLIBCXX_DEBUG)
    " libstdc++, debug mode";
#else
    " libstdc++";
#endif

[[nodiscard]] inline std::uint64_t hash_of(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325) noexcept  // FNV-1a
{
    for (const char letter : text) {
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
    return hash;
}

/// As in the source, where it is a whole name of a symbol.
[[nodiscard]] inline std::string readable(const char* name)
{
    int status = 0;
    char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string shown = status == 0 ? text : name;
    std::free(text);
    return shown;
}

template <class T>
[[nodiscard]] RootHeader header_of()
{
    const std::string_view name = type_name<T>();
    RootHeader header{RootHeader::right_magic, sizeof(T), alignof(T), hash_of(standard_library, hash_of(name)), {}};
    std::memcpy(header.type_name, name.data(), name.size() < RootHeader::name_bytes ? name.size() : RootHeader::name_bytes - 1);
    return header;
}

template <class T>
inline constexpr std::size_t root_bytes = sizeof(RootHeader) + sizeof(T) +
                                          (alignof(T) > alignment_of_malloc ? alignof(T) - alignment_of_malloc : 0);

template <class T>
[[nodiscard]] T* object_in(void* block) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(block) + sizeof(RootHeader);
    return durable_class<T>::at((begin + alignof(T) - 1) & ~(std::uintptr_t{alignof(T)} - 1));
}

/// Throws error, unless the block is one that root() made for this type.
inline void check_root(const char* handle, const void* block, std::size_t block_bytes, std::size_t wanted_bytes, const RootHeader& wanted)
{
    RootHeader found{};
    if (block_bytes >= sizeof found) {
        std::memcpy(&found, block, sizeof found);
    }
    const std::string name = "root \"" + std::string(handle) + "\"";
    if (found.magic != RootHeader::right_magic) {
        throw error(SP_E_INVALID_ARGUMENT, name +
                                               " was not made by stillpoint::root(): use sp_root or the program that made it, or another "
                                               "name");
    }
    if (found.size_bytes == wanted.size_bytes && found.alignment_bytes == wanted.alignment_bytes && block_bytes == wanted_bytes) {
        if (found.type_hash == wanted.type_hash) {
            return;
        }
        if (std::memcmp(found.type_name, wanted.type_name, RootHeader::name_bytes) == 0) {
            throw error(SP_E_INVALID_ARGUMENT, name + " was made by a program with another standard library than this one's," +
                                                   std::string(standard_library) + ": its containers are laid out differently");
        }
    }
    found.type_name[RootHeader::name_bytes - 1] = '\0';
    throw error(SP_E_INVALID_ARGUMENT, name + " holds a " + readable(found.type_name) + " of " + std::to_string(found.size_bytes) +
                                           " bytes, and the program asks for a " + readable(wanted.type_name) + " of " +
                                           std::to_string(wanted.size_bytes) +
                                           ". Nothing converts old data: use the old type, or another name");
}

/// One thread at a time makes, finds or deletes roots; a constructor may ask for other roots.
inline std::recursive_mutex roots_lock;

inline void check_engine()
{
    if (!sp_sections_are_atomic()) {
        throw error(SP_E_UNSUPPORTED,
                    "stillpoint.hpp keeps what the program stores in sections, and this pool's engine wants to be told of "
                    "each store: use the engine's own header (docs/guide/engines.md)");
    }
    DurableResource::renew();
}

}  // namespace detail

/// The object of that name, or nullptr. Throws error: it is of another type.
template <class T>
[[nodiscard]] T* find_root(const char* handle)
{
    detail::check_storable<T>();
    const std::lock_guard lock(detail::roots_lock);
    detail::check_engine();
    std::size_t bytes = 0;
    void* const block = sp_root_find(handle, &bytes);
    if (block == nullptr) {
        return nullptr;
    }
    detail::check_root(handle, block, bytes, detail::root_bytes<T>, detail::header_of<T>());
    return detail::object_in<T>(block);
}

/// The object of that name; it is made of `arguments` where there is none. Size, alignment and the name of the type are compared: what the
/// members mean is the program's to keep. A class with a member `static constexpr const char* type_name` is known by that, whatever it is
/// called. `handle`: 1 to 79 bytes. A crash while it is made leaves no root; so does an exception of the constructor, which is passed on.
/// Threads: any. Throws error (another type, an engine that this header is not for), std::bad_alloc.
template <class T, class... Arguments>
[[nodiscard]] T& root(const char* handle, Arguments&&... arguments)
{
    static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>, "a root is an object: for an array, a root of "
                                                                                     "std::array or stillpoint::vector");
    const std::lock_guard lock(detail::roots_lock);
    if (T* const found = find_root<T>(handle)) {
        return *found;
    }
    const section whole;
    void* const block = sp_root(handle, detail::root_bytes<T>);
    if (block == nullptr) {
        throw error(errno == EINVAL ? SP_E_INVALID_ARGUMENT : SP_E_NO_SPACE);
    }
    T* const object = detail::object_in<T>(block);
    try {
        ::new (static_cast<void*>(object)) T(std::forward<Arguments>(arguments)...);
    } catch (...) {
        sp_root_delete(handle);
        throw;
    }
    const detail::RootHeader header = detail::header_of<T>();
    std::memcpy(block, &header, sizeof header);
    return *object;
}

/// Ends the object of that name and forgets the name. False: there is none. Throws error: it is of another type.
template <class T>
bool delete_root(const char* handle)
{
    const std::lock_guard lock(detail::roots_lock);
    T* const found = find_root<T>(handle);
    if (found == nullptr) {
        return false;
    }
    const section whole;
    found->~T();
    if (const int code = sp_root_delete(handle); code != SP_OK) {
        throw error(code);
    }
    return true;
}

}  // namespace stillpoint

#endif

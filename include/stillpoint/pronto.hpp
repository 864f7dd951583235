#pragma once
// Pronto for C++: any deterministic class made durable, by wrapping it [Pronto, Memaripour's thesis, chapter 5].
//
//   class Scores : public pronto::object<Scores> {
//       std::vector<int, pronto::allocator<int>> values_;                // its memory lies in the pool
//   public:
//       static constexpr auto methods() { return pronto::methods(pronto::method<&Scores::add>("add")); }
//       void add(int value) { run<&Scores::add>(value, [&] { values_.push_back(value); }); }   // in a template: this->template run<...>
//   };
//   auto& scores = pronto::get_object<Scores>("scores");                 // made once, then found
//   scores.add(3);                                                       // durable on return
//
// A method that changes the object is an operation: it is logged by name and arguments, and run again after a crash. It is deterministic:
// what it does follows from the object and the arguments. docs/guide/pronto.md is the guide, pronto.h the interface below.
// Threads: as the class that is wrapped. Cost of an operation: what the log costs on its medium, besides what the method does.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stillpoint/durable_class.hpp"
#include "stillpoint/pronto.h"
#include "stillpoint/pronto_arguments.hpp"
#include "stillpoint/pronto_class.hpp"
#include "stillpoint/pronto_combining.hpp"
#include "stillpoint/pronto_lock.hpp"
#include "stillpoint/pronto_memory.hpp"

namespace stillpoint::pronto {

// ---- Operations ---------------------------------------------------------------------------------------

/// When an operation that was not waited for is durable, and every one that was committed before it. A value: copies mean the same.
/// Threads: any.
class durable_future {
public:
    /// Stands for no operation, and is ready.
    durable_future() = default;
    explicit durable_future(const sp_pronto_ticket& ticket) noexcept : ticket_(ticket) {}

    /// Throws not_durable: it never will be.
    void wait() const { detail::require_durable(sp_pronto_wait(&ticket_, -1)); }
    /// False: not yet. Throws not_durable.
    [[nodiscard]] bool wait_for(std::chrono::milliseconds time) const
    {
        const int code = sp_pronto_wait(&ticket_, time.count() < 0 ? 0 : time.count());
        if (code != SP_E_TIMED_OUT) {
            detail::require_durable(code);
        }
        return code != SP_E_TIMED_OUT;
    }
    [[nodiscard]] bool is_ready() const { return wait_for(std::chrono::milliseconds(0)); }

private:
    sp_pronto_ticket ticket_{};
};

/// While one lives this thread's operations end before they are durable, those of the ready-made containers too:
///   pronto::without_waiting batch;
///   for (const auto& [key, value] : order) map.put(key, value);
///   acknowledgements.push({client, batch.commit_async()});              // and answer when it is ready
/// Threads: one. It stays in its scope.
class [[nodiscard]] without_waiting {
public:
    without_waiting() noexcept { sp_pronto_defer_begin(); }
    without_waiting(const without_waiting&) = delete;
    without_waiting& operator=(const without_waiting&) = delete;
    ~without_waiting()
    {
        if (!has_ended_) {
            sp_pronto_defer_end(nullptr);
        }
    }

    /// Operations are waited for again; what is returned waits for those that were not.
    durable_future commit_async() noexcept
    {
        sp_pronto_ticket ticket{};
        if (!has_ended_) {
            has_ended_ = true;
            sp_pronto_defer_end(&ticket);
        }
        return durable_future(ticket);
    }

private:
    bool has_ended_ = false;
};

/// While one lives this thread's operations share a fence, where each has its own otherwise; those of the ready-made containers too:
///   pronto::group filling;
///   for (const int value : values) scores.push_back(value);
///   filling.commit();                                                   // durable on return, all of them
/// Until then no other thread sees what they have changed, and nothing is answered. A crash before it loses a number of the newest.
/// Threads: one. It stays in its scope. Cost: on byte-addressable media one fence for 32 operations of up to 32 bytes of arguments each.
class [[nodiscard]] group {
public:
    group() noexcept { sp_pronto_group_begin(); }
    group(const group&) = delete;
    group& operator=(const group&) = delete;
    ~group()
    {
        if (!has_ended_) {
            static_cast<void>(sp_pronto_group_end(nullptr));
        }
    }

    /// Ends it. Throws not_durable.
    void commit()
    {
        if (!std::exchange(has_ended_, true)) {
            sp_pronto_ticket ticket{};
            detail::require_durable(sp_pronto_group_end(&ticket));
            detail::require_durable(sp_pronto_wait_or_defer(&ticket));
        }
    }

private:
    bool has_ended_ = false;
};

/// An operation of this thread, from op_begin() to the end of its scope. It stays in its scope. If it is neither committed nor ended by an
/// exception, the method has changed nothing, and nothing is logged.
class [[nodiscard]] operation {
public:
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    /// Waits, after commit_early(), until the operation is durable. Throws not_durable, but not while another exception is in flight.
    ~operation() noexcept(false)
    {
        const bool by_exception = std::uncaught_exceptions() > exceptions_;
        const int code = sp_pronto_end(&native_, by_exception ? 1 : 0);
        if (!by_exception) {
            detail::require_durable(code);
        }
    }

    /// Durable on return. Inside the lock that orders operations which do not commute [equation 5.1]. Throws not_durable.
    void commit() { detail::require_durable(sp_pronto_commit(&native_)); }
    /// In the same order; the end of the operation waits, without the lock. Readers then have a read_guard. Throws not_durable.
    void commit_early() { detail::require_durable(sp_pronto_commit_early(&native_)); }
    /// In the same order; the operation ends before it is durable: what is returned waits. Throws not_durable.
    durable_future commit_async() { return durable_future(commit_with_ticket()); }

private:
    template <class Self>
    friend class object;

    template <class Encoding, class... Values>
    operation(std::type_identity<Encoding>, void* object, std::uint32_t method, const Values&... values)
    {
        const std::size_t bytes = Encoding::size_of(values...);
        int code = SP_OK;
        void* const place = sp_pronto_begin(&native_, object, method, bytes, &code);
        if (place == nullptr) {
            detail::throw_error(code);
        }
        try {
            writer out(place, bytes);
            Encoding::write(out, values...);
        } catch (...) {
            static_cast<void>(sp_pronto_end(&native_, 0));
            throw;
        }
        sp_pronto_start_logging(&native_);
    }

    sp_pronto_ticket commit_with_ticket()
    {
        sp_pronto_ticket ticket{};
        detail::require_durable(sp_pronto_commit_async(&native_, &ticket));
        return ticket;
    }

    sp_pronto_operation native_;
    int exceptions_ = std::uncaught_exceptions();
};

/// Commits the thread's innermost operation, in a structure that does not see it. Throws not_durable.
inline void op_commit() { detail::require_durable(sp_pronto_commit_current()); }

/// Around a read of an object whose operations commit early, begun before its lock is acquired: at its end, when the lock has been
/// released, it waits until all that the reader may have seen is durable.
class [[nodiscard]] read_guard {
public:
    explicit read_guard(const void* object) noexcept : object_(object), exceptions_(object == nullptr ? 0 : std::uncaught_exceptions()) {}
    read_guard(const read_guard&) = delete;
    read_guard& operator=(const read_guard&) = delete;
    /// Throws not_durable, but not while another exception is in flight.
    ~read_guard() noexcept(false)
    {
        if (object_ == nullptr) {
            return;
        }
        const int code = sp_pronto_wait_read(object_);
        if (std::uncaught_exceptions() == exceptions_) {
            detail::require_durable(code);
        }
    }

private:
    const void* object_;  ///< nullptr: there is nothing to wait for
    int exceptions_;
};

// ---- Objects --------------------------------------------------------------------------------------------

/// The base of a durable class: `class Scores : public pronto::object<Scores>`. The class has
///   static constexpr auto methods()     its operations;
///   static constexpr char type_name[]   its identity in the pool, 1 to 63 bytes. Without it that is its name as the compiler spells it,
///   which
///                                       for templates and unnamed namespaces is not the same with each compiler;
///   using constructor                   the parameters of its constructor, if it has some;
///   operator==                          if the option verify_replay is to compare objects.
/// It has no virtual functions, and all that it points to is durable memory: containers with pronto::allocator, or std::pmr ones with
/// durable_resource(). Its size and members are fixed once there are objects.
template <class Self>
class object : private stillpoint::detail::durable_class<Self> {
public:
    object(const object&) = delete;
    object& operator=(const object&) = delete;

    /// Lets a class say `bool operator==(const Scores&) const = default;`.
    template <class Base>
        requires std::same_as<Base, object>
    friend bool operator==(const Base&, const Base&) noexcept
    {
        return true;
    }

protected:
    /// Throws error (SP_E_INVALID_ARGUMENT) if the object is made anywhere but in get_object().
    object()
    {
        if (!detail::Making::has(this)) {
            throw error(SP_E_INVALID_ARGUMENT, "a durable object was made outside get_object(): it would not survive; ask for it by name");
        }
    }
    ~object() = default;

    /// Begins the operation `Method` with its arguments, before locks are acquired and before anything is changed. They are converted
    /// to the method's parameters, and encoded at once. Waits for a snapshot where one is due.
    /// Errors: refused; error with SP_E_POOL_READ_ONLY, SP_E_IO, SP_E_NO_MEMORY, SP_E_DETACHED, SP_E_INVALID_ARGUMENT. Nothing was begun
    /// then.
    template <auto Method, class... Arguments>
    operation op_begin(const Arguments&... arguments)
    {
        using List = std::remove_const_t<decltype(Self::methods())>;
        using Function = detail::Signature<decltype(Method)>;
        constexpr std::uint32_t place = detail::PlaceIn<Method, List>::value;
        static_assert(place < List::count,
                      "this method is not an operation: list it in methods() of its class, as pronto::method<&Class::name>(\"name\")");
        static_assert(sizeof...(Arguments) == Function::count, "an operation begins with as many arguments as its method has");
        static_cast<void>(&detail::TypeOf<Self>::registered);
        return begin<place, typename Function::Values>(std::index_sequence_for<Arguments...>(), std::tie(arguments...));
    }

    /// An operation whose work is the last argument, a function: begins with the others, calls it, commits, and returns its result.
    template <auto Method, class... ArgumentsAndWork>
    auto run(ArgumentsAndWork&&... all) -> std::invoke_result_t<std::tuple_element_t<sizeof...(all) - 1, std::tuple<ArgumentsAndWork&&...>>>
    {
        const std::tuple<ArgumentsAndWork&&...> given(std::forward<ArgumentsAndWork>(all)...);
        return perform<Method>(given, [](operation& running, const auto&...) { running.commit(); });
    }

    /// As run(), for operations that take turns: threads that come at the same time share one fence, where each of run() has its own inside
    /// the lock. One of them does the work of all, one after the other; the object needs no lock, if everything that uses it is combined.
    /// `work` may run in another thread. Calls inside the work, also of combine(), are a part of this operation.
    /// Cost: uncontended some 20 ns more than run(). Not inside a section, or while a lock is held that another operation's work needs.
    template <auto Method, class... ArgumentsAndWork>
    auto combine(ArgumentsAndWork&&... all)
        -> std::invoke_result_t<std::tuple_element_t<sizeof...(all) - 1, std::tuple<ArgumentsAndWork&&...>>>
    {
        return combined<Method, false>(std::forward_as_tuple(std::forward<ArgumentsAndWork>(all)...));
    }
    /// As combine(), where `work` returns something that is false if it has changed nothing: then nothing is logged.
    template <auto Method, class... ArgumentsAndWork>
    auto combine_if(ArgumentsAndWork&&... all)
        -> std::invoke_result_t<std::tuple_element_t<sizeof...(all) - 1, std::tuple<ArgumentsAndWork&&...>>>
    {
        return combined<Method, true>(std::forward_as_tuple(std::forward<ArgumentsAndWork>(all)...));
    }
    /// Reads in turn with combined operations. What it has seen is durable when this returns.
    template <class Work>
    auto combine_read(Work&& work) const -> std::invoke_result_t<Work&>
    {
        return detail::in_turn(this, [&](sp_pronto_ticket&) -> decltype(auto) { return work(); });
    }

    /// See read_guard.
    read_guard read() const noexcept { return read_guard(this_run().reads_wait != 0 ? this : nullptr); }
    /// Acquires an object_lock of this object, to the end of what is returned.
    lock_hold hold(object_lock& lock) const noexcept { return {lock, run_number()}; }
    shared_hold hold_shared(object_lock& lock) const noexcept { return {lock, run_number()}; }
    /// sp_pronto_run::number of this object.
    [[nodiscard]] std::uint32_t run_number() const noexcept { return this_run().number; }

private:
    [[nodiscard]] const sp_pronto_run& this_run() const noexcept
    {
        const auto* const own = reinterpret_cast<const std::byte*>(static_cast<const Self*>(this));
        return *reinterpret_cast<const sp_pronto_run*>(own - sizeof(sp_pronto_run));
    }
    /// An operation with all that is given but the last, which is its work; commit(operation, result...) follows that, without a result if
    /// it has none.
    template <auto Method, class Given, class Commit>
    auto perform(const Given& given, Commit commit) -> std::invoke_result_t<std::tuple_element_t<std::tuple_size_v<Given> - 1, Given>>
    {
        constexpr std::size_t count = std::tuple_size_v<Given> - 1;
        using Result = std::invoke_result_t<std::tuple_element_t<count, Given>>;
        return [&]<std::size_t... Place>(std::index_sequence<Place...>) -> Result {
            operation running = op_begin<Method>(std::get<Place>(given)...);
            if constexpr (std::is_void_v<Result>) {
                std::get<count>(given)();
                commit(running);
            } else {
                decltype(auto) result = std::get<count>(given)();
                commit(running, result);
                return std::forward<Result>(result);
            }
        }(std::make_index_sequence<count>());
    }
    template <auto Method, bool only_if, class Given>
    auto combined(Given given)
    {
        return detail::in_turn(this, [&](sp_pronto_ticket& ticket) {
            return perform<Method>(given, [&](operation& running, const auto&... result) {
                bool has_changed = true;
                if constexpr (only_if) {
                    has_changed = (static_cast<bool>(result) && ...);
                }
                if (has_changed) {
                    ticket = running.commit_with_ticket();
                }
            });
        });
    }
    template <std::uint32_t Place, class Values, class Given, std::size_t... At>
    operation begin(std::index_sequence<At...>, const Given& given)
    {
        return operation(std::type_identity<detail::Encoding<Values>>(), static_cast<Self*>(this), Place,
                         converted<std::tuple_element_t<At, Values>>(std::get<At>(given))...);
    }
    template <class Value, class Argument>
    static decltype(auto) converted(const Argument& argument)
    {
        static_assert(std::is_convertible_v<const Argument&, Value>, "an argument of op_begin does not fit the method's parameter");
        if constexpr (std::is_same_v<Argument, Value>) {
            return (argument);
        } else {
            return static_cast<Value>(argument);
        }
    }
};

namespace detail {
template <class T>
T* object_named(const std::string& name, unsigned flags, const void* arguments, std::size_t bytes, int& code)
{
    static_assert(std::is_base_of_v<object<T>, T>, "a durable class has the base stillpoint::pronto::object<Class>");
    DurableResource::renew();
    return static_cast<T*>(sp_pronto_object(TypeOf<T>::known(), name.c_str(), flags, arguments, bytes, &code));
}
}  // namespace detail

/// The object of that name (1 to 79 bytes), made from `arguments` where there is none: see sp_pronto_object. The first call in a process
/// recovers all objects of the classes that the program uses.
/// Errors: other_type; refused; error with the codes of sp_pronto_object; what the constructor throws, and nothing was made.
template <class T, class... Arguments>
[[nodiscard]] T& get_object(const std::string& name, const Arguments&... arguments)
{
    using Values = typename detail::ConstructorOf<T>::Values;
    static_assert(sizeof...(Arguments) == std::tuple_size_v<Values>,
                  "get_object() passes what `using constructor = pronto::constructor<...>;` of the class lists");
    const Values values{arguments...};
    return std::apply(
        [&](const auto&... value) -> T& {
            using Encoding = detail::Encoding<Values>;
            const std::size_t bytes = Encoding::size_of(value...);
            std::vector<std::uint64_t> place(bytes / sizeof(std::uint64_t) + 1);
            writer out(place.data(), bytes);
            Encoding::write(out, value...);
            int code = SP_OK;
            T* const found = detail::object_named<T>(name, 0, place.data(), bytes, code);
            if (found == nullptr) {
                detail::throw_error(code);
            }
            return *found;
        },
        values);
}

enum class changed_methods : unsigned {
    refuse = 0,
    /// Signatures that were changed are taken over, where no logged operation uses the old ones.
    accept = SP_PRONTO_ACCEPT_CHANGED_METHODS
};

/// As get_object(), but nullptr where there is none.
template <class T>
[[nodiscard]] T* find_object(const std::string& name, changed_methods changed = changed_methods::refuse)
{
    int code = SP_OK;
    T* const found = detail::object_named<T>(name, SP_PRONTO_MUST_EXIST | static_cast<unsigned>(changed), nullptr, 0, code);
    if (found == nullptr && code != SP_E_HANDLE_MISSING) {
        detail::throw_error(code);
    }
    return found;
}

/// Destroys the object and forgets its name, durably; false where there is none. No thread may use it. Cost: a snapshot.
/// Errors: other_type (no class of the program is its); error with the codes of sp_pronto_delete.
inline bool delete_object(const std::string& name)
{
    detail::DurableResource::renew();
    const int code = sp_pronto_delete(name.c_str());
    if (code != SP_OK && code != SP_E_HANDLE_MISSING) {
        detail::throw_error(code);
    }
    return code == SP_OK;
}

/// sp_pronto_snapshot. Throws error.
inline void snapshot()
{
    if (const int code = sp_pronto_snapshot(); code != SP_OK) {
        detail::throw_error(code);
    }
}

struct operation_numbers {
    std::uint64_t committed;
    std::uint64_t durable;
};
/// sp_pronto_numbers. Throws error.
template <class T>
[[nodiscard]] operation_numbers numbers_of(const object<T>& of)
{
    operation_numbers found{};
    if (const int code = sp_pronto_numbers(static_cast<const T*>(&of), &found.committed, &found.durable); code != SP_OK) {
        detail::throw_error(code);
    }
    return found;
}

}  // namespace stillpoint::pronto

#endif

#include "engines/pronto/object_methods.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

namespace stillpoint::pronto {

std::span<const MethodRecord> method_table(const ObjectRecord& record) noexcept
{
    return {reinterpret_cast<const MethodRecord*>(record.methods_address), record.method_count};
}

namespace {

/// The program's method for a name: its method number, or no_method.
std::uint16_t find_method(const sp_pronto_type& type, std::string_view name) noexcept
{
    for (std::size_t i = 0; i < type.method_count; ++i) {
        if (name == type.methods[i].name) {
            return static_cast<std::uint16_t>(i);
        }
    }
    return LiveObject::no_method;
}

bool is_logged(std::span<const LoggedOperation> logged, std::size_t pool_method) noexcept
{
    return std::any_of(logged.begin(), logged.end(), [&](const LoggedOperation& operation) { return operation.method == pool_method; });
}

Result<void> check_type(const LiveObject& object)
{
    const ObjectRecord& record = *object.record;
    if (std::string_view{record.type_name} != object.type->name) {
        return fail(SP_E_OBJECT_TYPE, 0, "the durable object \"{}\" is of the type {}, not {}", object.name.data(), record.type_name,
                    object.type->name);
    }
    if (record.size_bytes != object.type->size_bytes) {
        return fail(SP_E_OBJECT_TYPE, 0,
                    "the durable object \"{}\" of the type {} has {} bytes; in this program the type has {}: its members were changed",
                    object.name.data(), record.type_name, record.size_bytes, object.type->size_bytes);
    }
    return {};
}

/// Errors: as match_methods(). True: the program's signature replaces the pool's.
Result<bool> check_method(const LiveObject& object, const MethodRecord& known, std::uint16_t program_method, bool logged,
                          bool accept_changed)
{
    if (program_method == LiveObject::no_method) {
        if (!logged) {
            return false;
        }
        return fail(SP_E_OBJECT_TYPE, 0,
                    "the durable object \"{}\" has logged operations of the method {}{}, which the type {} does not have in this "
                    "program: run the program that wrote them once more and end it normally, then start this one",
                    object.name.data(), known.name, known.signature, object.type->name);
    }
    const char* const signature = object.type->methods[program_method].signature;
    if (std::string_view{known.signature} == signature) {
        return false;
    }
    if (logged || !accept_changed) {
        return fail(SP_E_OBJECT_TYPE, 0,
                    "the method {} of the type {} takes {} in this program; the durable object \"{}\" knows it with {}{}", known.name,
                    object.type->name, signature, object.name.data(), known.signature,
                    logged ? ", and has logged operations with these: run the program that wrote them once more and end it normally"
                           : ": give the method another name, or open the object with changed methods accepted");
    }
    return true;
}

}  // namespace

Result<bool> match_methods(LiveObject& object, std::span<const LoggedOperation> logged, bool accept_changed)
try {
    if (auto same = check_type(object); !same) {
        return pass_on(same.error());
    }
    const auto known = method_table(*object.record);
    const sp_pronto_type& type = *object.type;
    object.pool_methods.assign(type.method_count, 0);
    object.program_methods.assign(known.size(), LiveObject::no_method);
    std::vector<bool> found(type.method_count, false);
    bool changed = false;
    for (std::size_t i = 0; i < known.size(); ++i) {
        const std::uint16_t method = find_method(type, known[i].name);
        auto replaced = check_method(object, known[i], method, is_logged(logged, i), accept_changed);
        if (!replaced) {
            return replaced;
        }
        changed |= *replaced;
        object.program_methods[i] = method;
        if (method != LiveObject::no_method) {
            object.pool_methods[method] = static_cast<std::uint8_t>(i);
            found[method] = true;
        }
    }
    for (std::size_t method = 0; method < type.method_count; ++method) {
        if (!found[method]) {
            if (object.program_methods.size() >= SP_PRONTO_METHODS_MAX) {
                return fail(SP_E_OBJECT_TYPE, 0, "the durable object \"{}\" already has the maximum of {} methods", object.name.data(),
                            object.program_methods.size());
            }
            object.pool_methods[method] = static_cast<std::uint8_t>(object.program_methods.size());
            object.program_methods.push_back(static_cast<std::uint16_t>(method));
            changed = true;
        }
    }
    return changed;
} catch (const std::bad_alloc&) {
    return fail(SP_E_NO_MEMORY, 0, "no memory for the methods of the durable object \"{}\"", object.name.data());
}

std::size_t method_table_size(const LiveObject& object) noexcept { return object.program_methods.size(); }

void fill_method_table(const LiveObject& object, std::span<MethodRecord> table) noexcept
{
    const auto known = method_table(*object.record);
    std::copy(known.begin(), known.end(), table.begin());
    for (std::size_t i = 0; i < object.program_methods.size(); ++i) {
        const std::uint16_t method = object.program_methods[i];
        if (method != LiveObject::no_method) {
            table[i] = {};
            std::strncpy(table[i].name, object.type->methods[method].name, sizeof table[i].name - 1);
            std::strncpy(table[i].signature, object.type->methods[method].signature, sizeof table[i].signature - 1);
        }
    }
}

}  // namespace stillpoint::pronto

// A program that is changed between its runs: a class gets a method, and another order of them. By the C interface, since a C++ class
// has one table of methods in a process.

#include "objects/changed_methods.hpp"

#include <cstring>
#include <new>
#include <stdexcept>

#include "sim/trace.hpp"
#include "objects/object_workload.hpp"
#include "stillpoint/pronto.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::explorer {

namespace {

constexpr const char* object_name = "changing";

struct Number {
    std::uint64_t life, operations, value;

    [[nodiscard]] std::uint64_t digest() const noexcept
    {
        Digest sum;
        sum.add(life);
        sum.add(operations);
        sum.add(value);
        return sum.value();
    }
};

std::uint64_t argument_in(const void* arguments) noexcept
{
    std::uint64_t argument = 0;
    std::memcpy(&argument, arguments, sizeof argument);
    return argument;
}

template <bool multiplies>
void apply(Number& number, std::uint64_t argument) noexcept
{
    ++number.operations;
    number.value = multiplies ? number.value * (argument | 1) : number.value + argument;
}

template <bool multiplies>
int replay(void* object, const void* arguments, size_t bytes)
{
    if (bytes != sizeof(std::uint64_t)) {
        return SP_E_POOL_CORRUPT;
    }
    apply<multiplies>(*static_cast<Number*>(object), argument_in(arguments));
    return SP_OK;
}

int refuse_replay(void*, const void*, size_t) { return SP_E_POOL_CORRUPT; }

void construct(void* memory, const void* arguments, size_t)
{
    const auto* const number = new (memory) Number{argument_in(arguments), 0, 0};
    ObjectNotes::state(0, number->digest());
}

constexpr sp_pronto_method old_methods[] = {{"add", "(u64)", 0, &replay<false>}};
constexpr sp_pronto_method new_methods[] = {{"multiply", "(u64)", 0, &replay<true>}, {"add", "(u64)", 0, &replay<false>}};
constexpr sp_pronto_method newest_methods[] = {
    {"no_operation", "()", 0, &refuse_replay}, {"multiply", "(u64)", 0, &replay<true>}, {"add", "(u64)", 0, &replay<false>}};

template <std::size_t count>
constexpr sp_pronto_type type_with(const sp_pronto_method (&methods)[count])
{
    return {"explored number", sizeof(Number), alignof(Number), methods, count, &construct, [](void*) {}, nullptr};
}
constexpr sp_pronto_type old_type = type_with(old_methods);
constexpr sp_pronto_type new_type = type_with(new_methods);
constexpr sp_pronto_type newest_type = type_with(newest_methods);

void require(int code)
{
    if (code != SP_OK) {
        throw std::runtime_error(sp_last_error());
    }
}

class ChangedMethods final : public ObjectWorkload {
public:
    /// The first run has the old program, later ones the new one; a process that only recovers has a still newer one.
    ChangedMethods() : type_(sim::recording.load() == nullptr ? newest_type : sp_start_kind() == SP_START_FRESH ? old_type : new_type)
    {
        require(sp_pronto_register(&type_));
    }

private:
    void find_objects() override
    {
        int error = SP_OK;
        number_ = static_cast<Number*>(sp_pronto_object(&type_, object_name, SP_PRONTO_MUST_EXIST, nullptr, 0, &error));
        require(error == SP_E_HANDLE_MISSING ? static_cast<int>(SP_OK) : error);
    }
    PartDigests digests() const override { return {{0, number_ != nullptr ? number_->digest() : absent}}; }
    void perform(Random& random) override
    {
        const std::uint64_t argument = random();
        if (number_ == nullptr) {
            int error = SP_OK;
            number_ = static_cast<Number*>(sp_pronto_object(&type_, object_name, 0, &argument, sizeof argument, &error));
            require(error);
        } else {
            operate(random() % type_.method_count, argument);
        }
        ObjectNotes::acknowledged(0, number_->digest());
        ObjectNotes::number(0, number_, number_->operations != 0);
        if (random() % 8 == 0) {
            require(sp_pronto_snapshot());
        }
    }

    void operate(std::uint64_t method, std::uint64_t argument)
    {
        sp_pronto_operation operation;
        int error = SP_OK;
        void* const place = sp_pronto_begin(&operation, number_, static_cast<std::uint32_t>(method), sizeof argument, &error);
        require(error);
        std::memcpy(place, &argument, sizeof argument);
        sp_pronto_start_logging(&operation);
        if (type_.methods[method].replay == &replay<true>) {
            apply<true>(*number_, argument);
        } else {
            apply<false>(*number_, argument);
        }
        ObjectNotes::state(0, number_->digest());
        const int committed = sp_pronto_commit(&operation);
        require(sp_pronto_end(&operation, 0));
        require(committed);
    }

    const sp_pronto_type& type_;
    Number* number_ = nullptr;
};

}  // namespace

std::unique_ptr<ObjectWorkload> make_changed_methods() { return std::make_unique<ChangedMethods>(); }

}  // namespace stillpoint::explorer

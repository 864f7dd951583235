// The calls of pronto.hpp about classes, methods and operations to the runtime, and its use of the runtime's answers.

#include <memory_resource>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fake_runtime.hpp"
#include "stillpoint/pronto.hpp"
#include "wrapped_vector.hpp"

using fake_runtime::Call;

namespace {

/// Not in an unnamed namespace's template: its name is the one that it states.
class Journal : public pronto::object<Journal> {
public:
    static constexpr char type_name[] = "journal";
    using constructor = pronto::constructor<int, std::string>;
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&Journal::append>("append"), pronto::method<&Journal::append_all>("append_all"),
                               pronto::method<&Journal::append_or_throw>("append_or_throw", pronto::promise::unchanged_by_exception),
                               pronto::method<&Journal::append_half>("append_half"), pronto::method<&Journal::maybe>("maybe"),
                               pronto::method<&Journal::locked>("locked"), pronto::method<&Journal::early>("early"));
    }

    Journal(int first, std::string_view title) : values_{first}, title_(title)
    {
        if (first < 0) {
            throw std::invalid_argument("the first number is not negative");
        }
    }

    int append(int value)
    {
        return run<&Journal::append>(value, [&] {
            values_.push_back(value);
            return static_cast<int>(values_.size());
        });
    }
    void append_all(std::span<const int> values, const std::string& title) noexcept(false)
    {
        run<&Journal::append_all>(values, title, [&] {
            values_.insert(values_.end(), values.begin(), values.end());
            title_ = title;
        });
    }
    void append_or_throw(int value)
    {
        run<&Journal::append_or_throw>(value, [&] {
            if (value < 0) {
                throw std::invalid_argument("negative");
            }
            values_.push_back(value);
        });
    }
    void append_half(int value)
    {
        pronto::operation running = op_begin<&Journal::append_half>(value);
        values_.push_back(value);
        if (value < 0) {
            throw std::invalid_argument("negative");
        }
        append(value);  // inside: part of this operation
        running.commit();
    }
    bool maybe(int value)
    {
        pronto::operation running = op_begin<&Journal::maybe>(value);
        if (value < 0) {
            return false;
        }
        values_.push_back(value);
        running.commit();
        return true;
    }
    void locked(int value)
    {
        pronto::operation running = op_begin<&Journal::locked>(value);
        structure(value);
    }
    void early(int value)
    {
        pronto::operation running = op_begin<&Journal::early>(value);
        values_.push_back(value);
        running.commit_early();
    }
    [[nodiscard]] std::size_t size() const
    {
        const pronto::read_guard reading = read();
        return values_.size();
    }
    [[nodiscard]] const pronto::string& title() const { return title_; }
    bool operator==(const Journal&) const = default;

private:
    /// Commits what it does not see.
    void structure(int value)
    {
        values_.push_back(value);
        pronto::op_commit();
    }

    pronto::vector<int> values_;
    pronto::string title_;
};

class Pages : public pronto::object<Pages> {
public:
    static constexpr char type_name[] = "pages";
    static constexpr auto methods() { return pronto::methods(pronto::method<&Pages::add>("add")); }
    void add(std::string_view page)
    {
        run<&Pages::add>(page, [&] { pages_.emplace_back(page); });
    }
    [[nodiscard]] const std::pmr::vector<std::pmr::string>& pages() const { return pages_; }

private:
    std::pmr::vector<std::pmr::string> pages_{pronto::durable_resource()};
};

/// A method of a base, one that is const, one that is noexcept, one that moves.
class Meter : public pronto::object<Meter> {
public:
    static constexpr char type_name[] = "meter";
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&Meter::touch>("touch"), pronto::method<&Meter::set>("set"),
                               pronto::method<&Meter::take>("take"));
    }
    void touch() const
    {
        const_cast<Meter*>(this)->run<&Meter::touch>([&] { ++touches_; });
    }
    void set(long value) noexcept
    {
        run<&Meter::set>(value, [&] { value_ = value; });
    }
    void take(std::vector<int>&& values)
    {
        run<&Meter::take>(values, [&] { value_ = static_cast<long>(std::vector<int>(std::move(values)).size()); });
    }
    long value_ = 0;
    mutable int touches_ = 0;
};

class Objects : public testing::Test {
protected:
    void TearDown() override
    {
        fake_runtime::forget_all();
        EXPECT_EQ(fake_runtime::blocks_not_freed(), 0U);
    }
    Journal& journal = pronto::get_object<Journal>("journal", 1, "title");
};

TEST_F(Objects, AreFoundByNameAndMadeOnceFromTheFirstArguments)
{
    EXPECT_EQ(&pronto::get_object<Journal>("journal", 2, "other"), &journal);
    EXPECT_EQ(journal.title(), std::string_view("title"));
    EXPECT_EQ(pronto::find_object<Journal>("journal"), &journal);
    EXPECT_EQ(pronto::find_object<Journal>("nothing"), nullptr);
    EXPECT_TRUE(pronto::delete_object("journal"));
    EXPECT_FALSE(pronto::delete_object("journal"));
}

TEST_F(Objects, OfAnotherTypeAreRefused)
{
    try {
        static_cast<void>(pronto::get_object<Meter>("journal"));
        FAIL();
    } catch (const pronto::other_type& refusal) {
        EXPECT_EQ(refusal.code(), SP_E_OBJECT_TYPE);
        EXPECT_STREQ(refusal.what(), "journal has another type");
    }
}

TEST_F(Objects, ThatThrowWhenTheyAreMadeAreNot)
{
    EXPECT_THROW(static_cast<void>(pronto::get_object<Journal>("negative", -1, "")), std::invalid_argument);
    EXPECT_EQ(pronto::find_object<Journal>("negative"), nullptr);
}

TEST_F(Objects, AreMadeByGetObjectOnly)
{
    EXPECT_THROW(Journal(1, "on the stack"), pronto::error);
    EXPECT_THROW(Meter(), pronto::error);
}

TEST_F(Objects, AreKnownToTheRuntimeBeforeMain)
{
    const sp_pronto_type* const type = fake_runtime::type_named("journal");
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(type->size_bytes, sizeof(Journal));
    EXPECT_EQ(type->alignment_bytes, alignof(Journal));
    ASSERT_EQ(type->method_count, 7U);
    EXPECT_STREQ(type->methods[0].name, "append");
    EXPECT_STREQ(type->methods[0].signature, "(i32)");
    EXPECT_STREQ(type->methods[1].signature, "(vector<i32>,string)");
    EXPECT_EQ(type->methods[2].promises, static_cast<unsigned>(SP_PRONTO_UNCHANGED_BY_EXCEPTION));
    EXPECT_EQ(type->methods[3].promises, 0U);
    EXPECT_NE(type->equal, nullptr);
    ASSERT_NE(fake_runtime::type_named("pages"), nullptr);
    EXPECT_EQ(fake_runtime::type_named("pages")->equal, nullptr) << "the base's operator== is not the class's";
}

TEST_F(Objects, LogWhatTheirMethodsAreGivenAndAreTheSameWhenItIsRunAgain)
{
    EXPECT_EQ(journal.append(2), 2);
    journal.append_all(std::vector{3, 4}, "new title");
    journal.append_half(5);
    journal.locked(6);
    journal.early(7);
    EXPECT_FALSE(journal.maybe(-1));
    EXPECT_TRUE(journal.maybe(8));
    EXPECT_EQ(journal.size(), 9U);
    const auto log = fake_runtime::log_of("journal");
    ASSERT_EQ(log.size(), 6U) << "an operation inside another, and one that is not committed, are not logged";
    EXPECT_EQ(log[1].method, "append_all");
    EXPECT_EQ(pronto::numbers_of(journal).committed, 6U);
    EXPECT_TRUE(journal == *static_cast<Journal*>(fake_runtime::replayed("journal")));
}

TEST_F(Objects, KeepThePromiseOfAMethodThatThrows)
{
    EXPECT_THROW(journal.append_or_throw(-1), std::invalid_argument);
    EXPECT_EQ(journal.append(2), 2);
    EXPECT_EQ(fake_runtime::log_of("journal").size(), 1U);
}

TEST_F(Objects, AreRefusedAfterAnExceptionWithoutThatPromise)
{
    EXPECT_THROW(journal.append_half(-1), std::invalid_argument);
    EXPECT_THROW(journal.append(2), pronto::refused);
}

TEST_F(Objects, ThatCannotBeLoggedAreNotChanged)
{
    fake_runtime::fail_next(Call::begin, SP_E_IO);
    try {
        journal.append(2);
        FAIL();
    } catch (const pronto::error& failure) {
        EXPECT_EQ(failure.code(), SP_E_IO);
        EXPECT_EQ(dynamic_cast<const pronto::not_durable*>(&failure), nullptr);
    }
    EXPECT_EQ(journal.size(), 1U);
}

TEST_F(Objects, SayWhenWhatTheyDidWillNotBeDurable)
{
    fake_runtime::fail_next(Call::wait_read, SP_E_POOL_READ_ONLY);
    EXPECT_THROW(static_cast<void>(journal.size()), pronto::not_durable);
    fake_runtime::fail_next(Call::end, SP_E_NO_SPACE);
    EXPECT_THROW(journal.early(3), pronto::not_durable);
    fake_runtime::fail_next(Call::commit, SP_E_IO);
    EXPECT_THROW(journal.append(2), pronto::not_durable);
    EXPECT_THROW(journal.append(2), pronto::refused);
}

TEST_F(Objects, RefuseArgumentsThatDoNotDecode)
{
    const std::vector<std::uint64_t> words{~std::uint64_t{0}, ~std::uint64_t{0}};
    EXPECT_EQ(fake_runtime::replay("journal", &journal, "append", words.data(), 4), SP_OK);
    EXPECT_EQ(fake_runtime::replay("journal", &journal, "append", words.data(), 3), SP_E_POOL_CORRUPT);
    EXPECT_EQ(fake_runtime::replay("journal", &journal, "append", words.data(), 8), SP_E_POOL_CORRUPT);
    EXPECT_EQ(fake_runtime::replay("journal", &journal, "append_all", words.data(), 16), SP_E_POOL_CORRUPT);
    EXPECT_EQ(journal.size(), 2U);
}

TEST_F(Objects, TakeMethodsOfEachKind)
{
    auto& meter = pronto::get_object<Meter>("meter");
    meter.touch();
    meter.set(7);
    meter.take({1, 2, 3});
    const auto* const again = static_cast<Meter*>(fake_runtime::replayed("meter"));
    EXPECT_EQ(again->touches_, 1);
    EXPECT_EQ(again->value_, 3);
}

TEST_F(Objects, WrapAVectorInFewLines)
{
    auto& numbers = pronto::get_object<wrapped_vector<int>>("numbers");
    numbers.push_back(1);
    numbers.push_back(2);
    numbers.push_back(3);
    numbers.pop_back();
    numbers.set(0, 7);
    const auto& again = *static_cast<wrapped_vector<int>*>(fake_runtime::replayed("numbers"));
    EXPECT_EQ(std::vector<int>(again.begin(), again.end()), (std::vector{7, 2}));
    numbers.clear();
    EXPECT_EQ(numbers.size(), 0U);
}

TEST_F(Objects, HoldPmrContainersInDurableMemory)
{
    const std::size_t before = fake_runtime::allocated_blocks();
    auto& pages = pronto::get_object<Pages>("pages");
    pages.add(std::string(100, 'p'));
    EXPECT_EQ(std::string_view(pages.pages().at(0)), std::string(100, 'p'));
    EXPECT_EQ(fake_runtime::allocated_blocks(), before + 2);
    EXPECT_EQ(pages.pages().get_allocator().resource(), pronto::durable_resource());
}

TEST_F(Objects, FindTheirMemoryResourceWithThisProcesssFunctions)
{
    std::pmr::memory_resource* const resource = pronto::durable_resource();
    std::memset(static_cast<void*>(resource), 0x5A, sizeof(void*));  // as another process has left it
    auto& pages = pronto::get_object<Pages>("pages");
    EXPECT_EQ(pronto::durable_resource(), resource);
    pages.add(std::string(100, 'q'));
    EXPECT_TRUE(resource->is_equal(*pages.pages().get_allocator().resource()));
    EXPECT_FALSE(resource->is_equal(*std::pmr::new_delete_resource()));
}

TEST_F(Objects, AllocatorMeetsTheStandardsRequirements)
{
    using Traits = std::allocator_traits<pronto::allocator<int>>;
    static_assert(Traits::is_always_equal::value);
    static_assert(std::is_same_v<Traits::rebind_alloc<double>, pronto::allocator<double>>);
    static_assert(std::is_nothrow_copy_constructible_v<pronto::allocator<int>>);
    static_assert(std::is_nothrow_constructible_v<pronto::allocator<int>, const pronto::allocator<double>&>);
    EXPECT_TRUE(pronto::allocator<int>() == pronto::allocator<double>());
    pronto::allocator<int> allocator;
    int* const block = Traits::allocate(allocator, 3);
    Traits::deallocate(allocator, block, 3);
    EXPECT_THROW(static_cast<void>(allocator.allocate(~std::size_t{0})), std::bad_array_new_length);
    EXPECT_THROW(static_cast<void>(allocator.allocate(~std::size_t{0} / 8)), std::bad_alloc);
    struct alignas(256) Wide {
        char bytes[256];
    };
    pronto::allocator<Wide> wide;
    Wide* const aligned = wide.allocate(1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 256, 0U);
    wide.deallocate(aligned, 1);
}

}  // namespace

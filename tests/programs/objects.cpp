#include "objects.hpp"

#include <array>
#include <string>
#include <vector>

#include "stillpoint/pronto.hpp"

namespace {

namespace pronto = stillpoint::pronto;

/// A row of numbers and texts that follow from their places.
class Row final : public pronto::object<Row> {
public:
    static constexpr char type_name[] = "row";

    void add(std::uint64_t number, const std::string& text)
    {
        run<&Row::add>(number, text, [&] {
            sum_ += number;
            if (texts_.size() > 40) {
                texts_.clear();
            }
            texts_.emplace_back(text);
            ++count_;
        });
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] bool is_right() const
    {
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < count_; ++i) {
            sum += number_of(i);
        }
        std::uint64_t place = count_ - texts_.size();
        for (const pronto::string& text : texts_) {
            const std::string wanted = text_of(place++);
            if (std::string_view(text) != wanted) {
                return false;
            }
        }
        return sum == sum_;
    }
    static std::uint64_t number_of(std::uint64_t place) { return place * 0x9e3779b97f4a7c15u; }
    static std::string text_of(std::uint64_t place) { return std::string(1 + place % 90, static_cast<char>('a' + place % 26)); }

    static constexpr auto methods() { return pronto::methods(pronto::method<&Row::add>("add")); }

private:
    std::uint64_t count_ = 0;
    std::uint64_t sum_ = 0;
    pronto::vector<pronto::string> texts_;
};

std::array<Row*, 64> rows;

}  // namespace

void objects_begin(unsigned worker_count)
{
    for (unsigned i = 0; i < worker_count; ++i) {
        rows[i] = &pronto::get_object<Row>("row " + std::to_string(i));
    }
}

std::uint64_t objects_add(unsigned worker)
{
    Row& row = *rows[worker];
    const std::uint64_t place = row.count();
    row.add(Row::number_of(place), Row::text_of(place));
    return row.count();
}

std::uint64_t objects_verify(unsigned worker) { return rows[worker]->is_right() ? rows[worker]->count() : UINT64_MAX; }

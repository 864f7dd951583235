// The engines' part of the tables of options and statistics: made from the registry, so that no list of engines is kept here.

#include <array>
#include <charconv>
#include <iterator>
#include <string_view>

#include "api/options.hpp"
#include "api/registry.hpp"
#include "runtime/engine.hpp"

namespace stillpoint {

std::string_view default_engine() noexcept { return engine_drivers().front().format.name; }

namespace {

/// Text of fixed room: rows and options refer to it forever, and the first start may find no memory.
struct EnginesText {
    std::array<char, 1024> bytes{};
    std::size_t size = 0;

    void append(std::string_view more) noexcept { size += more.copy(bytes.data() + size, bytes.size() - size); }
    [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), size}; }
};

std::string_view separator_before(const EngineDriver& driver, std::string_view separator) noexcept
{
    return &driver == engine_drivers().data() ? "" : separator;
}

EnginesText make_engine_words()
{
    EnginesText text;
    for (const EngineDriver& driver : engine_drivers()) {
        text.append(separator_before(driver, "|"));
        text.append(driver.format.name);
    }
    return text;
}

EnginesText make_interval_sentence()
{
    EnginesText text;
    text.append("What the engine does in the background it does once in so many milliseconds; 0 takes the engine's own. ");
    for (const EngineDriver& driver : engine_drivers()) {
        char number[24];
        const auto end = std::to_chars(std::begin(number), std::end(number), driver.interval_ms).ptr;
        text.append(separator_before(driver, "; "));
        text.append(driver.format.name);
        text.append(" ");
        text.append({number, end});
        text.append(", ");
        text.append(driver.interval_means);
    }
    text.append(".");
    return text;
}

}  // namespace

std::string_view engine_words()
{
    static const EnginesText words = make_engine_words();
    return words.view();
}

std::string_view interval_sentence()
{
    static const EnginesText sentence = make_interval_sentence();
    return sentence.view();
}

}  // namespace stillpoint

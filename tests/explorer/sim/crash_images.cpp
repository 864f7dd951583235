#include "sim/crash_images.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

namespace stillpoint::sim {

namespace {

using Unit = CrashModel::Unit;
using Versions = std::vector<std::uint64_t>;

class Chooser {
public:
    Chooser(const CrashModel& model, const ImageChoice& choice, std::mt19937_64& random,
            const std::function<bool(const CrashImage&)>& visit)
        : model_(model), choice_(choice), random_(random), visit_(visit), units_(model.units())
    {
        for (const Unit& unit : units_) {
            result_.possible *= static_cast<double>(unit.versions);
        }
        result_.exhaustive = result_.possible <= static_cast<double>(choice.exhaustive_max);
    }

    ImagesOfAMoment run()
    {
        if (choice_.torn_words_only) {
            torn_words();
        } else if (result_.exhaustive) {
            all();
        } else {
            adversarial();
            while (wanted()) {
                emit(random_versions());
            }
        }
        return result_;
    }

private:
    [[nodiscard]] bool wanted() const { return !stopped_ && result_.visited < choice_.sample; }

    void emit(const Versions& versions)
    {
        ++result_.visited;
        stopped_ = stopped_ || !visit_(model_.image(units_, versions));
    }

    void all()
    {
        Versions versions(units_.size(), 0);
        while (!stopped_) {
            emit(versions);
            std::size_t at = 0;
            while (at < units_.size() && ++versions[at] == units_[at].versions) {
                versions[at++] = 0;
            }
            if (at == units_.size()) {
                return;
            }
        }
    }

    /// Combinations of whole and nearly whole units, and of missing and nearly missing ones.
    void torn_words()
    {
        while (wanted()) {
            const bool nearly_whole = random_() % 2 == 0;
            Versions versions(units_.size());
            for (std::size_t at = 0; at < units_.size(); ++at) {
                const std::uint64_t digit = random_() % (words_of(units_[at]) + 1);
                const std::uint64_t word = digit == 0 ? 0 : std::uint64_t{1} << (digit - 1);
                versions[at] = nearly_whole ? units_[at].versions - 1 - word : word;
            }
            emit(versions);
        }
    }

    /// Words that may be torn off a unit with one pending store.
    [[nodiscard]] static std::uint64_t words_of(const Unit& unit)
    {
        return unit.kind == Unit::Kind::line ? static_cast<std::uint64_t>(std::bit_width(unit.versions)) - 1 : 0;
    }

    [[nodiscard]] Versions newest() const
    {
        Versions versions(units_.size());
        std::transform(units_.begin(), units_.end(), versions.begin(), [](const Unit& unit) { return unit.versions - 1; });
        return versions;
    }

    /// Indexes in random order: where not all of a kind fit the sample, no region is favoured.
    [[nodiscard]] std::vector<std::size_t> shuffled()
    {
        std::vector<std::size_t> order(units_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), random_);
        return order;
    }

    void adversarial()
    {
        const Versions none(units_.size(), 0);
        emit(none);
        emit(newest());
        by_age();
        const std::uint64_t share = choice_.sample / 4;
        each_with(share, [&](std::size_t at, Versions& versions) {
            versions = none;
            versions[at] = units_[at].versions - 1;
        });
        each_with(share, [&](std::size_t at, Versions& versions) {
            versions = newest();
            versions[at] = 0;
        });
        each_with(share, [&](std::size_t at, Versions& versions) {
            versions = (random_() & 1u) != 0 ? newest() : none;
            versions[at] = torn_version(units_[at]);
        });
    }

    template <class Make>
    void each_with(std::uint64_t count, Make&& make)
    {
        Versions versions;
        for (const std::size_t at : shuffled()) {
            if (count-- == 0 || !wanted()) {
                return;
            }
            make(at, versions);
            emit(versions);
        }
    }

    /// Half of the time all words but one, or only one, of a unit.
    [[nodiscard]] std::uint64_t torn_version(const Unit& unit)
    {
        const std::uint64_t bit = std::uint64_t{1} << (random_() % 8);
        const std::uint64_t any = random_() % unit.versions;
        switch (random_() % 4) {
        case 0: return (unit.versions - 1) > bit ? unit.versions - 1 - bit : any;
        case 1: return bit < unit.versions ? bit : any;
        default: return any;
        }
    }

    /// Everything up to some event and nothing after it, then the reverse: there the file has its name and size, or it would not show what
    /// landed.
    void by_age()
    {
        std::vector<std::uint64_t> ages;
        for (const Unit& unit : units_) {
            ages.push_back(unit.newest);
        }
        std::sort(ages.begin(), ages.end());
        ages.erase(std::unique(ages.begin(), ages.end()), ages.end());
        const std::size_t step = std::max<std::size_t>(1, 8 * ages.size() / std::max<std::uint64_t>(choice_.sample, 8));
        for (std::size_t i = random_() % step; i + 1 < ages.size() && wanted(); i += step) {
            Versions early = newest();
            Versions late = newest();
            for (std::size_t at = 0; at < units_.size(); ++at) {
                const bool is_early = units_[at].newest <= ages[i];
                const bool shows_bytes = units_[at].kind == Unit::Kind::size || units_[at].kind == Unit::Kind::name;
                if (!is_early) {
                    early[at] = 0;
                } else if (!shows_bytes) {
                    late[at] = 0;
                }
            }
            emit(early);
            emit(late);
        }
    }

    [[nodiscard]] Versions random_versions()
    {
        Versions versions(units_.size());
        const std::uint64_t landed_of_16 = random_() % 17;
        constexpr std::uint64_t torn_shares[] = {0, 1, 4, 8};
        const std::uint64_t torn_of_8 = torn_shares[random_() % std::size(torn_shares)];
        for (std::size_t at = 0; at < units_.size(); ++at) {
            const std::uint64_t draw = random_() % 16;
            const bool torn = random_() % 8 < torn_of_8;
            versions[at] = torn ? torn_version(units_[at]) : draw < landed_of_16 ? units_[at].versions - 1 : 0;
        }
        return versions;
    }

    const CrashModel& model_;
    const ImageChoice& choice_;
    std::mt19937_64& random_;
    const std::function<bool(const CrashImage&)>& visit_;
    std::vector<Unit> units_;
    ImagesOfAMoment result_;
    bool stopped_ = false;
};

}  // namespace

ImagesOfAMoment for_each_image(const CrashModel& model, const ImageChoice& choice, std::mt19937_64& random,
                               const std::function<bool(const CrashImage&)>& visit)
{
    return Chooser(model, choice, random, visit).run();
}

}  // namespace stillpoint::sim

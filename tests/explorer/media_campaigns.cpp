// The real media against the contract of medium.hpp: a trace of their own stores, fences and system calls
// says what is durable when a call returns.

#include <array>
#include <cstring>
#include <unistd.h>

#include "campaign.hpp"
#include "media/open.hpp"

namespace stillpoint::explorer {

namespace {

struct alignas(page_bytes) Page {
    std::byte bytes[page_bytes];
};

/// One medium under test, with the model of what it has made durable.
class Contract {
public:
    Contract(MediumKind kind, const CampaignSettings& settings, CampaignResult& result, std::string name)
        : kind_(kind), result_(result), name_(std::move(name)), path_(settings.scratch + "/" + std::to_string(getpid()) + ".contract"),
          model_(kind == MediumKind::file ? sim::Profile::page : sim::Profile::cache_line, sim::CrashImage{{}, false}),
          trace_(std::size_t{1} << 26), random_(settings.seed)
    {
    }

    void run()
    {
        sim::recording.store(&trace_, std::memory_order_release);
        unlink(path_.c_str());
        checked(first_run(), "the first run");
        checked(second_run(), "a run after a kill");
        checked(failed_sync(), "a run whose sync fails");
        unlink(path_.c_str());
        sim::recording.store(nullptr, std::memory_order_release);
    }

private:
    [[nodiscard]] MediumOptions options() const
    {
        MediumOptions options;
        options.path = path_;
        options.kind = kind_;
        options.durability = Durability::power;
        options.publish_later = true;
        options.caches_are_persistent = false;
        return options;
    }

    void checked(const Result<void>& outcome, const char* what)
    {
        if (!outcome) {
            violation(what, outcome.error().message);
        }
    }

    void violation(const std::string& where, const std::string& what)
    {
        ++result_.figures.violations;
        result_.violations.push_back({name_, where, what});
    }

    /// Brings the model up to date.
    void absorb()
    {
        for (const sim::Event& event : trace_.events()) {
            model_.apply(event);
        }
        trace_.clear();
    }

    /// Every image of a crash now has these pages and this size, under its name.
    void expect_durable(const char* when, std::uint64_t size, const std::vector<int>& fills)
    {
        absorb();
        ++result_.figures.moments;
        sim::for_each_image(model_, {4096, 200}, random_, [&](const sim::CrashImage& image) {
            ++result_.figures.states;
            if (!image.named) {
                violation(when, "the file may be without a name");
                return false;
            }
            if (image.content.size_bytes() != size) {
                violation(when, "the file may have " + std::to_string(image.content.size_bytes()) + " bytes");
                return false;
            }
            for (std::size_t page = 0; page < fills.size(); ++page) {
                Page expected;
                std::memset(expected.bytes, fills[page], page_bytes);
                if (!image.content.equals(page * page_bytes, expected.bytes, page_bytes)) {
                    violation(when, "page " + std::to_string(page) + " may be lost");
                    return false;
                }
            }
            return true;
        });
    }

    static Result<void> write_page(Medium& medium, std::uint64_t page, int fill)
    {
        auto source = std::make_unique<Page>();
        std::memset(source->bytes, fill, page_bytes);
        const BlockWrite write{page * page_bytes, source->bytes, page_bytes};
        return medium.write({&write, 1});
    }

    Result<void> first_run()
    {
        auto medium = create_medium(options(), 4 * page_bytes);
        if (!medium) {
            return pass_on(medium.error());
        }
        for (int page = 0; page < 2; ++page) {
            if (auto done = write_page(**medium, static_cast<std::uint64_t>(page), page + 1); !done) {
                return done;
            }
        }
        if (auto done = (*medium)->publish(); !done) {
            return done;
        }
        if (auto done = (*medium)->sync(); !done) {
            return done;
        }
        expect_durable("after publish and sync", 4 * page_bytes, {1, 2});
        if (auto done = (*medium)->resize(8 * page_bytes); !done) {
            return done;
        }
        expect_durable("after a growth", 8 * page_bytes, {1, 2});
        if (auto done = write_page(**medium, 2, 3); !done) {
            return done;
        }
        if ((*medium)->byte_addressable()) {
            expect_durable("after a write to byte-addressable memory", 8 * page_bytes, {1, 2, 3});
            const std::uint64_t word = 0x0404040404040404;
            for (std::uint64_t at = 0; at < page_bytes; at += sizeof word) {
                (*medium)->store(3 * page_bytes + at, &word, sizeof word);
            }
            (*medium)->write_back(3 * page_bytes, page_bytes);
        } else if (auto done = write_page(**medium, 3, 4); !done) {
            return done;
        }
        if (auto done = (*medium)->sync(); !done) {
            return done;
        }
        expect_durable("after a sync", 8 * page_bytes, {1, 2, 3, 4});
        return {};
    }

    /// The run before was killed just after it had made and named its file: nothing of that is durable.
    Result<void> second_run()
    {
        sim::CrashImage nothing{{}, false};
        const sim::CrashImage seen = model_.visible();
        model_ = sim::CrashModel(model_.profile(), nothing);
        sim::Event made{sim::EventKind::resize, 0, 0, 0, seen.content.size_bytes(), nullptr};
        model_.apply(made);
        model_.apply({sim::EventKind::name, 0, 0, 0, 0, nullptr});
        auto medium = open_medium(options());
        if (!medium) {
            return pass_on(medium.error());
        }
        if (auto done = write_page(**medium, 0, 9); !done) {
            return done;
        }
        if (auto done = (*medium)->sync(); !done) {
            return done;
        }
        expect_durable("after the first sync of a run after a kill", seen.content.size_bytes(), {9});
        return {};
    }

    /// After a sync that failed nothing is written, and no later sync succeeds.
    Result<void> failed_sync()
    {
        MediumOptions failing = options();
        failing.faults = "sync:EIO@1";
        auto medium = open_medium(failing);
        if (!medium) {
            return pass_on(medium.error());
        }
        if (auto done = write_page(**medium, 1, 7); !done) {
            return done;
        }
        if ((*medium)->sync()) {
            violation("a sync that fails", "it was not reported");
        }
        ++result_.figures.states;
        if (write_page(**medium, 1, 8)) {
            violation("a write after a failed sync", "it was taken");
        }
        if ((*medium)->sync()) {
            violation("a sync after a failed one", "it succeeded, and the kernel has forgotten the pages");
        }
        return {};
    }

    MediumKind kind_;
    CampaignResult& result_;
    std::string name_;
    std::string path_;
    sim::CrashModel model_;
    sim::Trace trace_;
    Random random_;
};

}  // namespace

std::vector<Campaign> media_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const auto& [kind, text] : {std::pair{MediumKind::file, "file"}, std::pair{MediumKind::memory, "memory"}}) {
        const std::string name = std::string("media/") + text;
        campaigns.push_back({name, [name, medium = kind](const CampaignSettings& settings) {
                                 CampaignResult result;
                                 Contract(medium, settings, result, name).run();
                                 return result;
                             }});
    }
    return campaigns;
}

}  // namespace stillpoint::explorer

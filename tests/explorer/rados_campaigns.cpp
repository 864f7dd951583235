// Pools in RADOS, as the model has them: owners that are shut out, and media that promise too much.

#include <cstring>

#include "api/registry.hpp"
#include "campaign.hpp"
#include "runtime/engine.hpp"
#include "sim/crash_images.hpp"
#include "sim/sim_medium.hpp"

namespace stillpoint::explorer {

namespace {

using SyncWaitsFor = sim::Stage::SyncWaitsFor;

constexpr std::uint64_t pool_pages = 3 * sim::object_bytes / page_bytes;

struct alignas(page_bytes) PoolPage {
    std::byte bytes[page_bytes];
};

Result<void> put_page(Medium& medium, std::uint64_t page, std::uint64_t fill)
{
    auto source = std::make_unique<PoolPage>();
    std::memset(source->bytes, static_cast<int>(fill), page_bytes);
    const BlockWrite write{page * page_bytes, source->bytes, page_bytes};
    return medium.write({&write, 1});
}

/// An owner writes and syncs, writes more, and loses the pool while any of that is under way; it goes on, and nothing of it arrives.
class TakeOver {
public:
    TakeOver(std::string name, bool fenced, const CampaignSettings& settings)
        : name_(std::move(name)), fenced_(fenced), random_(settings.seed), trace_(std::size_t{1} << 24)
    {
    }

    CampaignResult run()
    {
        constexpr int rounds = 200;
        sim::recording.store(&trace_, std::memory_order_release);
        for (int round = 0; round < rounds && result_.violations.empty(); ++round) {
            trace_.clear();
            ++result_.figures.states;
            if (auto done = history(); !done) {
                violation(done.error().message);
            }
        }
        sim::set_stage(nullptr);
        sim::recording.store(nullptr, std::memory_order_release);
        return result_;
    }

private:
    void violation(const std::string& what)
    {
        ++result_.figures.violations;
        result_.violations.push_back({name_, "after a take-over", what});
    }

    /// One of the images that the cluster may have at the take-over.
    sim::CrashImage at_the_take_over()
    {
        sim::CrashModel model(sim::Profile::rados, sim::CrashImage{{}, false});
        for (const sim::Event& event : trace_.events()) {
            model.apply(event);
        }
        sim::CrashImage chosen;
        std::uint64_t left = random_() % 64;
        sim::for_each_image(model, {4096, 64}, random_, [&](const sim::CrashImage& image) {
            chosen = image;
            return left-- != 0;
        });
        return chosen;
    }

    Result<void> history()
    {
        sim::Stage stage(false, sim::CrashImage{{}, false});
        stage.in_objects = true;
        stage.fences_owners = fenced_;
        sim::set_stage(&stage);
        MediumOptions options;
        options.path = "simulated";
        auto old_owner = create_medium(options, pool_pages * page_bytes);
        if (!old_owner) {
            return pass_on(old_owner.error());
        }
        for (std::uint64_t page = 0; page < pool_pages; ++page) {
            if (auto done = put_page(**old_owner, page, 1); !done) {
                return done;
            }
        }
        if (auto done = (*old_owner)->sync(); !done) {
            return done;
        }
        for (int write = 0; write < 6; ++write) {
            if (auto done = put_page(**old_owner, random_() % pool_pages, 2); !done) {
                return done;
            }
        }
        const sim::CrashImage applied = at_the_take_over();
        stage.take_over(applied);
        auto new_owner = open_medium(options);
        if (!new_owner) {
            return pass_on(new_owner.error());
        }
        return check(stage, applied, **old_owner, **new_owner);
    }

    Result<void> check(const sim::Stage& stage, const sim::CrashImage& applied, Medium& old_owner, Medium& new_owner)
    {
        sim::PageMap expected = applied.content;
        const std::uint64_t own = random_() % pool_pages;
        if (auto done = put_page(new_owner, own, 3); !done) {
            return done;
        }
        expected.write(own * page_bytes, stage.visible_bytes() + own * page_bytes, page_bytes);
        const std::uint64_t others = random_() % pool_pages;
        const auto refused = put_page(old_owner, others, 4);
        if (refused || refused.error().code != SP_E_POOL_LOCKED) {
            violation("a write of the former owner was taken");
        }
        if (old_owner.sync()) {
            violation("a sync of the former owner succeeded");
        }
        if (auto done = new_owner.sync(); !done) {
            return done;
        }
        if (!expected.equals(0, stage.visible_bytes(), pool_pages * page_bytes)) {
            violation("bytes of the former owner arrived");
        }
        for (std::uint64_t page = 0; page < pool_pages; ++page) {
            if (stage.visible_bytes()[page * page_bytes] == std::byte{0}) {
                violation("page " + std::to_string(page) + ", which was acknowledged, is lost");
            }
        }
        return {};
    }

    std::string name_;
    bool fenced_;
    Random random_;
    sim::Trace trace_;
    CampaignResult result_;
};

Campaign take_over(std::string name, bool fenced)
{
    return {name, [name, fenced](const CampaignSettings& settings) { return TakeOver(name, fenced, settings).run(); }};
}

}  // namespace

std::vector<Campaign> rados_campaigns() { return {take_over("media/rados", true)}; }

std::vector<Campaign> wrong_rados_campaigns()
{
    std::vector<Campaign> campaigns = {take_over("media/rados-without-fencing", false)};
    for (const EngineDriver& driver : engine_drivers()) {
        ProgramPlan plan;
        plan.workload = &workloads().front();
        plan.engine = driver.format.name;
        plan.tracker = "auto";
        plan.profile = sim::Profile::rados;
        plan.sync_waits_for = SyncWaitsFor::first_object;
        campaigns.push_back(exploration(plan.engine + "/rados-sync-of-first-object", plan));
        plan.sync_waits_for = SyncWaitsFor::nothing;
        campaigns.push_back(exploration(plan.engine + "/rados-sync-waits-for-nothing", plan));
    }
    return campaigns;
}

}  // namespace stillpoint::explorer

#include "explorer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "arch/checksum.hpp"

namespace stillpoint::explorer {

namespace {

using sim::Event;
using sim::EventKind;

constexpr std::size_t violations_kept = 5;
constexpr std::size_t recovered_kept = 100'000;
/// Which of a run's syncs fails: one of those of its opening, or of its first checkpoints.
constexpr std::uint64_t syncs_to_fail = 20;

bool stores_bytes(EventKind kind) noexcept
{
    return kind == EventKind::store || kind == EventKind::nontemporal_store || kind == EventKind::block_write;
}

/// Before these, the set of images is the largest since the one before.
bool makes_durable(EventKind kind) noexcept
{
    return kind == EventKind::fence || kind == EventKind::sync || kind == EventKind::sync_failed || kind == EventKind::name_sync ||
           kind == EventKind::head_changed;
}

/// A store that the process was killed in the middle of.
Event cut_off(const Event& event, Random& random)
{
    const std::uint64_t unit = event.kind == EventKind::block_write ? sim::sector_bytes : 8;
    Event cut = event;
    cut.size = std::min(event.size, std::max<std::uint64_t>(unit, random() % event.size / unit * unit));
    return cut;
}

/// Stores to a part of the file's head: they are few, and what all depends on.
std::vector<std::size_t> stores_between(const std::vector<Event>& events, std::uint64_t begin, std::uint64_t end)
{
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (stores_bytes(events[i].kind) && events[i].offset >= begin && events[i].offset < end) {
            found.push_back(i);
        }
    }
    return found;
}

/// Before the program works.
std::vector<std::size_t> write_backs_of_opening(const std::vector<Event>& events)
{
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < events.size() && events[i].kind != EventKind::acknowledge; ++i) {
        if (events[i].kind == EventKind::write_back) {
            found.push_back(i);
        }
    }
    return found;
}

/// For each of these events the fence or sync before it: what a commit record waits for.
std::vector<std::size_t> last_fences_before(const std::vector<Event>& events, const std::vector<std::size_t>& stores)
{
    std::vector<std::size_t> found;
    for (const std::size_t store : stores) {
        std::size_t at = store;
        while (at > 0 && events[at].kind != EventKind::fence && events[at].kind != EventKind::sync) {
            --at;
        }
        found.push_back(at);
    }
    return found;
}

/// The fences and syncs after the last store of a promise: what the promise waits for.
std::vector<std::size_t> fences_of_promises(const std::vector<Event>& events)
{
    std::vector<std::size_t> found;
    std::size_t fence = events.size();
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (makes_durable(events[i].kind)) {
            fence = i;
        } else if (events[i].kind == EventKind::part_acknowledge && fence < i) {
            found.push_back(fence);
        }
    }
    return found;
}

std::string_view name_of(EventKind kind) noexcept
{
    switch (kind) {
    case EventKind::store: return "a store";
    case EventKind::nontemporal_store: return "a non-temporal store";
    case EventKind::write_back: return "a write back";
    case EventKind::fence: return "a fence";
    case EventKind::block_write: return "a write";
    case EventKind::sync:
    case EventKind::sync_failed: return "a sync";
    case EventKind::resize: return "a growth";
    case EventKind::name: return "the naming";
    case EventKind::name_sync: return "a sync of the name";
    case EventKind::hand_over: return "the end of an operation";
    case EventKind::head_changed: return "the end of a change of the head";
    case EventKind::acknowledge:
    case EventKind::part_acknowledge: return "an acknowledgement";
    default: return "a note";
    }
}

}  // namespace

void Figures::add(const Figures& other) noexcept
{
    states += other.states;
    recoveries += other.recoveries;
    moments += other.moments;
    exhausted += other.exhausted;
    runs += other.runs;
    violations += other.violations;
    seconds += other.seconds;
    cut_short = cut_short || other.cut_short;
}

Explorer::Explorer(std::string name, ProgramPlan plan, const Limits& limits, std::uint64_t seed, std::string scratch)
    : name_(std::move(name)), plan_(std::move(plan)), limits_(limits), random_(seed), runner_(std::move(scratch))
{
}

double Explorer::elapsed_seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }

bool Explorer::exhausted() const
{
    return figures_.states >= limits_.states || figures_.violations != 0 || elapsed_seconds() > limits_.seconds;
}

History history_for(const ProgramPlan& plan)
{
    History history;
    if (plan.timed) {
        history.expect_states_by_the_clock();
    }
    if (plan.objects != nullptr || plan.typed != nullptr) {
        history.expect_parts_only();
    } else if (operations_are_durable(plan)) {
        history.expect_operations_only();
    }
    return history;
}

void Explorer::run() { go_round(sim::CrashImage{{}, false}, history_for(plan_), 1); }

void Explorer::run_from(const sim::CrashImage& file, const History& history) { go_round(file, history, 2); }

void Explorer::go_round(const sim::CrashImage& file, const History& history, unsigned generation)
{
    // Each round runs the program with another seed.
    for (std::uint64_t round = 0; !exhausted(); ++round) {
        plan_.seed = plan_.seed * 31 + round;
        plan_.ends_normally = round % 2 == 1;
        const std::uint64_t before = figures_.states;
        explore({std::make_shared<sim::CrashModel>(plan_.profile, file, sim::PageCopy::at_one_instant, plan_.cut_sector), history,
                 "seed " + std::to_string(plan_.seed)},
                generation);
        if (figures_.states == before) {
            break;  // Nothing new: smaller than its limit.
        }
    }
    figures_.seconds = elapsed_seconds();
    figures_.cut_short = figures_.seconds > limits_.seconds;
}

void Explorer::explore(const Crash& start, unsigned generation)
{
    plan_.run = ++figures_.runs;
    if (plan_.failing_sync != UINT64_MAX) {
        plan_.failing_sync = random_() % syncs_to_fail;
    }
    ProgramRun run = runner_.run(plan_, start.model->visible());
    if (!run.problem.empty()) {
        report(start.text, "run " + std::to_string(generation) + ": " + run.problem);
        return;
    }
    std::vector<Crash> next;
    explore_trace(start, run, generation, next);
    run.events.clear();  // Their bytes are overwritten by the next run.
    for (const Crash& crash : next) {
        if (exhausted()) {
            return;
        }
        explore(crash, generation + 1);
    }
}

/// Indexes of events before which the machine is crashed: events.size() is the end. Where torn words are looked for,
/// only the fences that make the engine's records durable.
std::vector<std::size_t> Explorer::moments_of(const std::vector<Event>& events) const
{
    const bool every_store = plan_.profile == sim::Profile::process || plan_.profile == sim::Profile::persistent_caches;
    std::vector<std::size_t> moments;
    if (plan_.torn_words) {
        for (const std::size_t store : stores_between(events, 2 * page_bytes, 6 * page_bytes)) {
            const auto fence = std::find_if(events.begin() + static_cast<std::ptrdiff_t>(store), events.end(),
                                            [](const Event& event) { return event.kind == EventKind::fence; });
            const auto at = static_cast<std::size_t>(fence - events.begin());
            if (moments.empty() || moments.back() != at) {
                moments.push_back(at);
            }
        }
        return moments;
    }
    for (std::size_t i = 0; i < events.size(); ++i) {
        const bool after_promise = i > 0 &&
                                   (events[i - 1].kind == EventKind::acknowledge || events[i - 1].kind == EventKind::part_acknowledge);
        const bool after_store = every_store && i > 0 && stores_bytes(events[i - 1].kind);
        if (after_promise || after_store || makes_durable(events[i].kind)) {
            moments.push_back(i);
        }
    }
    moments.push_back(events.size());
    return moments;
}

/// Otherwise a long trace, as of a program whose own stores are events, would be explored at its beginning only.
std::vector<std::size_t> Explorer::some_of(const std::vector<std::size_t>& moments, std::size_t most)
{
    if (moments.size() <= most) {
        return moments;
    }
    std::vector<std::size_t> chosen;
    std::sample(moments.begin(), moments.end(), std::back_inserter(chosen), most, random_);
    return chosen;
}

/// Indexes of events before which the process is killed: half of them anywhere, half where few events decide much.
std::vector<std::size_t> Explorer::kill_moments(const std::vector<Event>& events, unsigned kills, unsigned generation)
{
    std::vector<std::size_t> kill_at(kills);
    const std::vector<std::size_t> superblocks = stores_between(events, 0, 2 * page_bytes);
    const std::vector<std::size_t> engine_area = stores_between(events, 2 * page_bytes, 6 * page_bytes);
    const std::vector<std::size_t> awaited = last_fences_before(events, engine_area);
    const auto failed = static_cast<std::size_t>(
        std::find_if(events.begin(), events.end(), [](const Event& event) { return event.kind == EventKind::sync_failed; }) -
        events.begin());
    const std::vector<std::size_t> promised = fences_of_promises(events);
    const std::vector<std::size_t> opening = write_backs_of_opening(events);
    std::generate(kill_at.begin(), kill_at.end(), [&] {
        if (failed < events.size() && random_() % 2 == 0) {
            return failed + 1;  // The next run finds what was not made durable.
        }
        if (plan_.kill_in_openings && !opening.empty()) {
            return opening[random_() % opening.size()];  // The next opening continues from what is in the caches alone.
        }
        if (plan_.kill_around_commits && !awaited.empty()) {
            // The epoch's slots are durable and nothing commits them; the next run clears them, and does not come to its fence.
            return awaited[random_() % awaited.size()] + generation % 2;
        }
        if (!promised.empty() && random_() % 2 == 0) {
            return promised[random_() % promised.size()];  // The next run continues from what is in the caches alone.
        }
        const std::vector<std::size_t>* const classes[] = {&superblocks, &engine_area, &awaited};
        const std::vector<std::size_t>& few = *classes[random_() % std::size(classes)];
        if (few.empty() || random_() % 2 == 0) {
            return random_() % (events.size() + 1);
        }
        const std::uint64_t after = &few == &awaited ? random_() % 2 : random_() % 4 != 0 ? 1 : 0;
        return few[random_() % few.size()] + after;
    });
    return kill_at;
}

void Explorer::explore_trace(const Crash& start, const ProgramRun& run, unsigned generation, std::vector<Crash>& next)
{
    const std::vector<Event>& events = run.events;
    const std::uint64_t left = std::min(limits_.program_states, limits_.states > figures_.states ? limits_.states - figures_.states : 1);
    const std::uint64_t moments_max = plan_.power_cuts_only ? 16 : std::max<std::uint64_t>(32, left / 4);
    const std::vector<std::size_t> moments = some_of(moments_of(events), moments_max);
    const bool goes_on = generation < limits_.generations;
    const unsigned kills = goes_on ? std::max(1u, limits_.kills >> (generation - 1)) : 0;
    const unsigned cuts = goes_on ? std::max(1u, limits_.power_cuts >> (generation - 1)) : 0;
    const std::vector<std::size_t> kill_at = kill_moments(events, kills, generation);
    std::vector<std::size_t> cut_at(cuts);
    std::generate(cut_at.begin(), cut_at.end(), [&] { return moments.empty() ? events.size() : moments[random_() % moments.size()]; });

    // Rather many programs than every image of a few.
    const std::uint64_t runs_to_come = 1 + (goes_on ? kills + cuts : 0);
    const std::uint64_t budget = std::max<std::uint64_t>(8, left / (runs_to_come * (moments.size() + 1)) + 1);

    sim::CrashModel model = *start.model;
    History history = start.history;
    if (generation > 1) {
        // Now, since the clock may take a checkpoint before the program says what it has found.
        const Recovered& recovered = recovered_from(start.model->visible());
        history.begin_run(recovered.epoch, recovered.operations, recovered.epoch + 1);
    }
    bool opened = false;
    std::size_t moment = 0;
    for (std::size_t i = 0; i <= events.size() && !exhausted(); ++i) {
        const std::string where = start.text + "; run " + std::to_string(generation) + ", event " + std::to_string(i) + " of " +
                                  std::to_string(events.size()) +
                                  (i < events.size() ? ", before " + std::string(name_of(events[i].kind)) : "");
        if (moment < moments.size() && moments[moment] == i) {
            ++moment;
            look_at_moment(model, history, where, budget, std::count(cut_at.begin(), cut_at.end(), i), next);
        }
        if (std::find(kill_at.begin(), kill_at.end(), i) != kill_at.end()) {
            auto killed = std::make_shared<sim::CrashModel>(model);
            std::string how = "; killed";
            if (i < events.size() && stores_bytes(events[i].kind) && plan_.profile != sim::Profile::rados && random_() % 2 == 0) {
                killed->apply(cut_off(events[i], random_));
                how = "; killed inside it";
            }
            killed->kill();
            const sim::CrashImage& behind = killed->visible();
            const bool sound = judge_image(behind, history, where + how);
            if (sound && (!behind.named || recovered_from(behind).kind == Recovered::Kind::state)) {
                next.push_back({std::move(killed), history, where + how});
            }
        }
        if (i < events.size()) {
            if (events[i].kind == EventKind::acknowledge && !opened) {
                opened = true;
                history.begin_run(events[i].value, events[i].offset, events[i].size);
                if (events[i].size <= history.told()) {
                    report(where, "epoch number " + std::to_string(events[i].size) + " is given out again");
                    return;
                }
            }
            model.apply(events[i]);
            history.apply(events[i]);
            if (!history.parts().problem().empty()) {
                report(where, history.parts().problem());
                return;
            }
        }
    }
}

void Explorer::look_at_moment(const sim::CrashModel& model, const History& history, const std::string& where, std::uint64_t budget,
                              std::ptrdiff_t starts, std::vector<Crash>& next)
{
    ++figures_.moments;
    sim::ImageChoice choice{std::min(limits_.exhaustive_max, 4 * budget), budget, plan_.torn_words};
    if (plan_.torn_words) {
        choice.sample = 200;
    } else if (plan_.power_cuts_only) {
        choice.sample = 40;  // With fewer there are no random ones.
    }
    std::uint64_t seen = 0;
    std::vector<sim::CrashImage> kept(static_cast<std::size_t>(starts));
    const auto images = sim::for_each_image(model, choice, random_, [&](const sim::CrashImage& image) {
        ++seen;
        for (sim::CrashImage& start : kept) {
            if (random_() % seen == 0) {
                start = image;
            }
        }
        return judge_image(image, history, where + "; power cut") && elapsed_seconds() <= limits_.seconds;
    });
    figures_.exhausted += images.exhaustive ? 1 : 0;
    for (const sim::CrashImage& start : kept) {
        // A file that holds no pool yet is nothing to go on from.
        if (violations_.empty() && recovered_from(start).kind == Recovered::Kind::state) {
            next.push_back({std::make_shared<sim::CrashModel>(model.profile(), start, sim::PageCopy::at_one_instant, model.cut_sector()),
                            history, where + "; power cut"});
        }
    }
}

const Recovered& Explorer::recovered_from(const sim::CrashImage& image)
{
    const std::uint64_t digest = image.digest();
    if (const auto found = recovered_.find(digest); found != recovered_.end()) {
        return found->second;
    }
    if (recovered_.size() > recovered_kept) {
        recovered_.clear();
    }
    ++figures_.recoveries;
    Recovered& recovered = recovered_[digest] = recover(plan_, image);
    recovered.page_digests = {};
    return recovered;
}

/// False: a violation.
bool Explorer::judge_image(const sim::CrashImage& image, const History& history, const std::string& where)
{
    const Floor& floor = history.floor();
    const std::uint64_t promise = mix64(mix64(floor.epoch, floor.operations + history.parts().floor_digest()), figures_.runs);
    if (!judged_.insert(mix64(image.digest(), promise)).second) {
        return true;  // An image of the same bytes under the same promises was judged.
    }
    ++figures_.states;
    if (!judge(recovered_from(image), history).empty()) {
        report(where, judge(recover(plan_, image), history));  // With the page that is wrong.
        return false;
    }
    return true;
}

void Explorer::report(const std::string& where, const std::string& what)
{
    ++figures_.violations;
    if (violations_.size() < violations_kept) {
        violations_.push_back({name_, where, what});
    }
}

}  // namespace stillpoint::explorer

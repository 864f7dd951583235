#include "replica_explorer.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "arch/checksum.hpp"
#include "media/replica/page_transfer.hpp"
#include "sim/sim_medium.hpp"
#include "sim/two_sides.hpp"

namespace stillpoint::explorer {

namespace {

using sim::Event;
using sim::EventKind;

constexpr std::size_t images_kept = 20'000;
constexpr std::size_t looks_of_a_run = 24;      ///< moments whose images are judged
constexpr std::uint64_t images_of_a_look = 6;
constexpr std::size_t openings_of_a_run = 3;    ///< crashes after which a program opens both sides, and does no more
constexpr unsigned generations = 4;
constexpr std::string_view words_of_a_refusal = "Nothing is merged";

/// Before these much has changed that is not durable, or the two sides and their record differ.
bool is_decisive(const Event& event) noexcept
{
    switch (event.kind) {
    case EventKind::sync:
    case EventKind::name_sync:
    case EventKind::head_changed:
    case EventKind::claim:
    case EventKind::replaced:
    case EventKind::replica_record:
    case EventKind::replica_record_sync:
    case EventKind::acknowledge:
    case EventKind::replica_acknowledge: return true;
    default: return false;
    }
}

/// But for the end of a transfer that was cut off, which each process that opens the replica for writing sees to.
bool changes_something(const Event& event) noexcept
{
    const bool writes = event.kind == EventKind::block_write || event.kind == EventKind::resize;
    return (writes && event.medium != static_cast<std::uint8_t>(sim::Side::replica)) || event.kind == EventKind::claim ||
           event.kind == EventKind::replaced || event.kind == EventKind::replica_record;
}

/// The bytes that an opener of the replica finds: a transfer that was cut off is ended.
Result<sim::CrashImage> opened(const sim::CrashImage& image)
{
    auto raw = std::make_unique<sim::ImageMedium>(image.content, false);
    const Medium* const plain = raw.get();
    auto medium = with_transfer_finished(std::move(raw));
    if (!medium) {
        return pass_on(medium.error());
    }
    sim::CrashImage whole = image;
    std::vector<std::byte> page(page_bytes);
    for (std::uint64_t at = 0; medium->get() != plain && at < image.content.size_bytes(); at += page_bytes) {
        if (auto read = (*medium)->read(at, page); !read) {
            return pass_on(read.error());
        }
        if (!whole.content.equals(at, page.data(), page.size())) {
            whole.content.write(at, page.data(), page.size());
        }
    }
    return whole;
}

}  // namespace

ReplicaExplorer::ReplicaExplorer(std::string name, ProgramPlan plan, bool is_sync, const Limits& limits, std::uint64_t seed,
                                 std::string scratch)
    : name_(std::move(name)), plan_(std::move(plan)), is_sync_(is_sync), limits_(limits), random_(seed), runner_(std::move(scratch))
{
}

double ReplicaExplorer::elapsed_seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }

bool ReplicaExplorer::exhausted() const
{
    return figures_.states >= limits_.states || figures_.violations != 0 || elapsed_seconds() > limits_.seconds;
}

void ReplicaExplorer::report(const std::string& where, const std::string& what)
{
    if (figures_.violations++ == 0) {
        violations_.push_back({name_, where, what});
    }
}

void ReplicaExplorer::run()
{
    const sim::CrashImage none{{}, false};
    for (std::uint64_t round = 0; !exhausted(); ++round) {
        plan_.seed = plan_.seed * 31 + round;
        plan_.ends_normally = round % 2 == 1;
        const History history = history_for(plan_);
        explore({Sides({none, none, {}, 0, 1, 0}), history, history, false, false, false, "seed " + std::to_string(plan_.seed)}, 1);
    }
    figures_.seconds = elapsed_seconds();
    figures_.cut_short = figures_.seconds > limits_.seconds;
}

void ReplicaExplorer::explore(const Start& start, unsigned generation)
{
    ProgramPlan plan = plan_;
    plan.run = ++figures_.runs;
    if (start.on_replica_alone) {
        plan.has_replica = false;
    } else {
        plan.more_options += std::string(" replica=") + ProgramRunner::replica_name + " replicate=" + (is_sync_ ? "sync" : "async");
    }
    if (start.only_opens) {
        plan.operations = 0;
        plan.ends_normally = false;
    }
    ProgramRun run = runner_.run_replicated(plan, start.sides.visible(1 + figures_.runs), start.on_replica_alone);
    if (run.problem.find(words_of_a_refusal) != std::string::npos) {
        check_refusal(start, run);
        return;
    }
    if (!run.problem.empty()) {
        report(start.text, "run " + std::to_string(generation) + ": " + run.problem);
        return;
    }
    std::vector<Start> next;
    walk(start, run, generation, next);
    run.events.clear();  // Their bytes are overwritten by the next run.
    for (const Start& crash : next) {
        if (exhausted()) {
            return;
        }
        explore(crash, generation + 1);
    }
}

/// Right only where another machine has taken over, and it cannot be told that this one has acknowledged nothing more than the replica had.
void ReplicaExplorer::check_refusal(const Start& start, const ProgramRun& run)
{
    ++figures_.states;
    if (is_sync_ || !start.was_taken_over) {
        report(start.text, "refused: " + run.problem);
    } else if (std::ranges::any_of(run.events, changes_something)) {
        report(start.text, "changed something, and refused: " + run.problem);
    }
}

std::vector<std::size_t> ReplicaExplorer::crash_moments(const std::vector<Event>& events, std::size_t count, bool in_opening)
{
    const auto acknowledged = std::ranges::find_if(events, [](const Event& event) { return event.kind == EventKind::acknowledge; });
    const auto opening = static_cast<std::size_t>(acknowledged - events.begin());
    std::vector<std::size_t> decisive;
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (is_decisive(events[i])) {
            decisive.push_back(i);
        }
    }
    std::vector<std::size_t> moments(count);
    std::ranges::generate(moments, [&]() -> std::size_t {
        const std::uint64_t way = random_() % 4;
        if (in_opening && way != 0) {
            return random_() % (opening + 1);
        }
        if (way < 2 || decisive.empty()) {
            return way == 0 ? random_() % (events.size() + 1) : events.size();
        }
        return decisive[random_() % decisive.size()] + random_() % 2;
    });
    return moments;
}

void ReplicaExplorer::walk(const Start& start, const ProgramRun& run, unsigned generation, std::vector<Start>& next)
{
    const std::vector<Event>& events = run.events;
    const bool goes_on = !start.only_opens && generation < generations;
    const bool reconciles = generation > 1 && !start.on_replica_alone;
    const auto looks = crash_moments(events, start.only_opens ? 2 : looks_of_a_run, false);
    const auto openings = crash_moments(events, start.only_opens ? 0 : openings_of_a_run, reconciles);
    const auto runs = crash_moments(events, goes_on ? generations - generation : 0, reconciles);
    const auto at = [](const std::vector<std::size_t>& moments, std::size_t i) { return std::ranges::count(moments, i); };

    // A machine that comes back has the longest history; an opening alone does not go so far.
    constexpr std::size_t losses_of_an_opening = 3;
    static constexpr Loss some_losses[] = {Loss::process, Loss::power, Loss::machine, Loss::machine_for_a_while, Loss::machine_for_a_while};
    Start reached = start;
    unsigned acknowledgements = 0;
    for (std::size_t i = 0; i <= events.size() && !exhausted(); ++i) {
        reached.text = start.text + "; run " + std::to_string(generation) + (start.on_replica_alone ? " on the replica" : "") + ", event " +
                       std::to_string(i) + " of " + std::to_string(events.size());
        if (at(looks, i) != 0) {
            look(reached, acknowledgements != 0);
        }
        for (auto count = at(openings, i) + at(runs, i); count > 0; --count) {
            const bool only_opens = count > at(runs, i);
            const std::size_t choices = only_opens ? losses_of_an_opening : std::size(some_losses);
            next.push_back(after(some_losses[random_() % choices], reached));
            next.back().only_opens = only_opens;
        }
        if (i < events.size()) {
            take(events[i], reached, acknowledgements);
        }
    }
}

void ReplicaExplorer::take(const Event& event, Start& reached, unsigned& acknowledgements)
{
    reached.sides.apply(event);
    if (event.kind == EventKind::acknowledge && acknowledgements++ == 0) {
        ++figures_.states;
        const Floor& floor = reached.history.floor();
        if (event.value < floor.epoch || event.offset < floor.operations) {
            report(reached.text, "the opening finds epoch " + std::to_string(event.value) + " with " + std::to_string(event.offset) +
                                     " operations; acknowledged were epoch " + std::to_string(floor.epoch) + " and " +
                                     std::to_string(floor.operations) + " operations");
            return;
        }
        reached.was_taken_over = reached.was_taken_over && reached.on_replica_alone;
        Event in_replica = event;
        if (!is_sync_ && !reached.on_replica_alone) {
            // Both were equal before this run; an epoch that it has made since, to begin with, may follow later.
            in_replica.value = std::min(event.value, reached.replica_history.floor().epoch);
        }
        for (History* const history : {&reached.history, &reached.replica_history}) {
            history->begin_run(event.value, event.offset, event.size);
        }
        reached.history.apply(event);
        reached.replica_history.apply(in_replica);
        return;
    }
    if (event.kind == EventKind::operation && acknowledgements == 1 && event.value != 0) {
        const std::uint64_t* const known = reached.history.operation(event.value);
        if (known != nullptr && std::memcmp(known, event.data, sizeof *known) != 0) {
            report(reached.text, "the opening finds no state after " + std::to_string(event.value) + " operations");
            return;
        }
    }
    Event told = event;
    if (event.kind == EventKind::replica_acknowledge) {
        told.kind = EventKind::acknowledge;
    }
    reached.history.apply(told);
    if (event.kind != EventKind::acknowledge || is_sync_ || reached.on_replica_alone) {
        reached.replica_history.apply(told);
    }
}

/// The images of either side alone: the machine is lost, or the cluster.
void ReplicaExplorer::look(const Start& reached, bool is_open)
{
    ++figures_.moments;
    const auto judge_all = [&](const sim::CrashModel& model, auto&& judge_one) {
        const auto images = sim::for_each_image(model, {4 * images_of_a_look, images_of_a_look}, random_,
                                                [&](const sim::CrashImage& image) {
                                                    judge_one(image);
                                                    return !exhausted();
                                                });
        figures_.exhausted += images.exhaustive ? 1 : 0;
    };
    judge_all(reached.sides.replica(), [&](const sim::CrashImage& image) {
        const auto whole = opened(image);
        whole ? judge_image(*whole, reached.replica_history, reached.text + "; the replica alone")
              : report(reached.text, whole.error().message);
    });
    if (is_open && !reached.on_replica_alone) {
        judge_all(reached.sides.here(),
                  [&](const sim::CrashImage& image) { judge_image(image, reached.history, reached.text + "; the pool alone"); });
    }
}

ReplicaExplorer::Start ReplicaExplorer::after(Loss loss, const Start& reached)
{
    Start start = reached;
    if (reached.on_replica_alone) {
        // This machine goes. The one whose pool has the replica is as it was left, and comes back.
        if (loss == Loss::process) {
            start.sides.kill();
        }
        start.sides = Sides(loss == Loss::process ? start.sides.visible(0) : start.sides.any_after_power_cut(random_));
        start.on_replica_alone = false;
        start.was_taken_over = true;
        start.text += "; ended, and the first machine comes back";
        return start;
    }
    if (loss == Loss::process) {
        start.sides.kill();
        start.text += "; killed";
        return start;
    }
    ReplicatedFiles files = start.sides.any_after_power_cut(random_);
    start.text += "; power cut";
    if (loss == Loss::machine) {
        files.here = {{}, false};
        files.record.clear();
        files.here_number = 0;
        start.was_taken_over = false;
        start.text += ", and its disk is lost";
    }
    // Another machine can go on only with a replica that has its name.
    start.on_replica_alone = loss == Loss::machine_for_a_while && files.replica.named;
    if (start.on_replica_alone || loss == Loss::machine) {
        start.history = start.replica_history;
    }
    start.sides = Sides(files);
    return start;
}

void ReplicaExplorer::judge_image(const sim::CrashImage& image, const History& history, const std::string& where)
{
    const std::uint64_t digest = image.digest();
    const Floor& floor = history.floor();
    if (!judged_.insert(mix64(mix64(digest, mix64(floor.epoch, floor.operations)), figures_.runs)).second) {
        return;
    }
    ++figures_.states;
    auto found = recovered_.find(digest);
    if (found == recovered_.end()) {
        if (recovered_.size() > images_kept) {
            recovered_.clear();
        }
        ++figures_.recoveries;
        found = recovered_.emplace(digest, recover(plan_, image)).first;
        found->second.page_digests = {};
    }
    if (const std::string wrong = judge(found->second, history); !wrong.empty()) {
        report(where, wrong);
    }
}

}  // namespace stillpoint::explorer

#include "engines/pmthreads/capture.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <utility>

#include "core/racing_copy.hpp"
#include "engines/pmthreads/hot_chunks.hpp"
#include "os/clock.hpp"
#include "os/log.hpp"
#include "runtime/kernel_writes.hpp"

namespace stillpoint::pmthreads {

Result<void> Capture::reserve(std::uint64_t image_pages_max, std::uint64_t staging_pages, const versions::DeltaLog* log,
                              const versions::VersionTable* table)
{
    staging_pages_ = std::min(staging_pages, image_pages_max);
    log_ = log;
    table_ = table;
    if (auto done = reserve_lines(image_pages_max); !done) {
        return done;
    }
    if (auto done = index_of_.reserve(image_pages_max, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = pages_.reserve(image_pages_max, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = unstaged_.reserve(image_pages_max, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = copies_.reserve(staging_pages_, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = slot_of_.reserve(image_pages_max, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = slot_pages_.reserve(staging_pages_, "page copies"); !done) {
        return done;
    }
    if (auto done = slot_changes_.reserve(staging_pages_, "page copies"); !done) {
        return done;
    }
    if (auto done = staging_.reserve(staging_pages_ * page_bytes, "page copies"); !done) {
        return done;
    }
    if (auto done = aside_.reserve(pages_aside * page_bytes, "page copies"); !done) {
        return done;
    }
    if (auto done = carried_.reserve(image_pages_max, "pages of requests in flight"); !done) {
        return done;
    }
    if (auto done = carried_since_ns_.reserve(image_pages_max, "pages of requests in flight"); !done) {
        return done;
    }
    for (Piece& piece : pieces_) {
        // At most every other page begins a run.
        if (auto done = piece.runs.reserve(image_pages_max / 2 + HotChunks::chunk_pages, "the pages of an epoch"); !done) {
            return done;
        }
    }
    madvise(staging_.data(), staging_pages_ * page_bytes, MADV_HUGEPAGE);
    return {};
}

bool Capture::add(std::uint64_t image_page, bool certain, const Shadow& shadow, std::uint64_t lines) noexcept
{
    std::uint32_t index = index_of_[image_page];
    bool is_new = true;
    if (index == 0) {
        if (log_ != nullptr && lines_of_[image_page] != 0) {
            made_whole_[made_whole_count_++] = static_cast<std::uint32_t>(image_page);
        }
        const bool has_copy = slot_of_[image_page] != 0;
        index = static_cast<std::uint32_t>(page_count_++);
        pages_[index] = {static_cast<std::uint32_t>(image_page), certain, false, false, collect_number_, take_slot(image_page)};
        index_of_[image_page] = index + 1;
        staged_count_ += is_staged(index) ? 1U : 0U;
        if (has_copy && lines != all_lines) {
            pages_[index].is_patched = true;
            if (lines != 0) {
                add_patch(image_page, lines);
            }
            return true;
        }
    } else {
        Page& known = pages_[--index];
        known.certain |= certain;
        is_new = known.found_in != collect_number_;
        if (!add_again(known, lines)) {
            return is_new;
        }
    }
    if (is_staged(index)) {
        slot_changes_[pages_[index].slot] = all_lines;
        copies_[copy_count_++] = {copy_in(pages_[index].slot), shadow.page(image_page)};
    } else {
        unstaged_[unstaged_count_++] = index;
    }
    return is_new;
}

bool Capture::add_again(Page& known, std::uint64_t lines) noexcept
{
    if (known.found_in == collect_number_) {
        if (!known.is_patched) {
            return false;
        }
        known.is_patched = lines != all_lines;  // A system call's stores have no marks.
        if (known.is_patched) {
            add_patch(known.image_page, lines);
        }
        return !known.is_patched;
    }
    known.found_in = collect_number_;
    ++found_again_;
    known.is_patched = lines != all_lines && known.slot != no_slot;
    if (!known.is_patched) {
        ++whole_again_;
        return true;
    }
    patches_again_ += static_cast<std::uint64_t>(std::popcount(lines));
    add_patch(known.image_page, lines);
    return false;
}

std::uint64_t Capture::add_wanted(const Shadow& shadow) noexcept
{
    std::uint64_t added = 0;
    for (std::uint64_t i = 0; i < wanted_count_; ++i) {
        // A copy that is kept is as the page, but for what this look finds.
        const std::uint64_t lines = slot_of_[wanted_[i]] != 0 ? 0 : all_lines;
        added += index_of_[wanted_[i]] == 0 && add(wanted_[i], true, shadow, lines) ? 1U : 0U;
        pages_[index_of_[wanted_[i]] - 1].wanted_whole = true;
    }
    wanted_count_ = 0;
    return added;
}

std::uint64_t Capture::add_runs(Tracker& tracker, const Search& search, const Piece& piece, const Shadow& shadow) noexcept
{
    constexpr std::uint64_t pages_of_step = 128;
    const bool has_lines = tracker.has_lines();
    std::uint64_t found = 0;
    for (std::uint64_t r = 0; r < piece.run_count; ++r) {
        const WrittenRun& run = piece.runs[r];
        const std::uint64_t last = (run.end - search.base) / page_bytes;
        for (std::uint64_t page = (run.begin - search.base) / page_bytes; page < last; ++page) {
            bool is_new = false;
            if (has_lines && log_ != nullptr) {
                is_new = add_lines(page, tracker.take_found_lines(page), shadow);
            } else {
                is_new = (!has_lines || tracker.take_found_lines(page) != 0) && add(page, run.certain, shadow);
            }
            found += is_new ? 1U : 0U;
            if (search.pacer != nullptr && page % pages_of_step == 0) {
                search.pacer->step_done();
            }
        }
    }
    return found;
}

void Capture::copy_found(const Shadow& shadow, CopyTeam* team, Pacer* pacer) noexcept
{
    if (team != nullptr) {
        team->copy(copies_.data(), copy_count_);
    } else {
        // The program may be writing them: what it writes meanwhile is found by the next look and copied again. In a stop it is not, and
        // ThreadSanitizer judges those copies.
        for (std::uint64_t i = 0; i < copy_count_; ++i) {
            racing_copy(copies_[i].destination, copies_[i].source, page_bytes);
            pacer->page_done();
        }
    }
    LinesCopy copying{this, &shadow};
    copy_lines_of(group_count_ - first_new_group_, &copy_groups, copying, team, pacer);
    copy_lines_of(patch_count_, &patch_copies, copying, team, pacer);
}

std::uint64_t Capture::add_kernel_writes(const Shadow& shadow, ScanMode scan_mode) noexcept
{
    struct Found {
        Capture* capture;
        const Shadow* shadow;
        bool certain;
        std::uint64_t count;
    };
    constexpr auto add_run = [](void* context, kernel_writes::PageRun run) {
        Found& found = *static_cast<Found*>(context);
        const auto base = reinterpret_cast<std::uintptr_t>(found.shadow->base());
        for (std::uintptr_t page = run.begin; page < run.end; page += page_bytes) {
            found.count += found.capture->add((page - base) / page_bytes, found.certain, *found.shadow) ? 1U : 0U;
        }
    };
    const auto begin = reinterpret_cast<std::uintptr_t>(shadow.base());
    Found found{this, &shadow, false, 0};
    if (scan_mode == ScanMode::stop) {
        kernel_writes::visit_in_flight(begin, begin + shadow.bytes(), add_run, &found);
    }
    found.certain = true;
    kernel_writes::take_stored(begin, begin + shadow.bytes(), add_run, &found);
    return found.count;
}

const std::byte* Capture::copy_aside(std::uint64_t slot, const std::byte* page) noexcept
{
    std::byte* const copy = aside_.data() + slot * page_bytes;
    racing_copy(copy, page, page_bytes);
    return copy;
}

void Capture::carry(std::uint64_t image_page) noexcept
{
    if (carried_since_ns_[image_page] == 0) {
        carried_[carried_count_++] = static_cast<std::uint32_t>(image_page);
    }
    carried_since_ns_[image_page] = os::monotonic_ns();
}

void Capture::forget_carried(std::uint64_t older_than_ns) noexcept
{
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0; i < carried_count_; ++i) {
        const std::uint32_t page = carried_[i];
        if (carried_since_ns_[page] < older_than_ns) {
            carried_since_ns_[page] = 0;
        } else {
            carried_[kept++] = page;
        }
    }
    carried_count_ = kept;
}

std::uint64_t Capture::add_carried(const Shadow& shadow) noexcept
{
    std::uint64_t added = 0;
    for (std::uint64_t i = 0; i < carried_count_; ++i) {
        added += add(carried_[i], false, shadow) ? 1U : 0U;
    }
    return added;
}

template <class Visit>
void Capture::visit_pages(std::span<const os::AsyncRequests::Range> ranges, const Shadow& shadow, Visit&& visit) noexcept
{
    const auto base = reinterpret_cast<std::uintptr_t>(shadow.base());
    for (const os::AsyncRequests::Range& range : ranges) {
        const std::uint64_t end_page = std::min((range.end - base + page_bytes - 1) / page_bytes, shadow.bytes() / page_bytes);
        for (std::uint64_t page = (range.begin - base) / page_bytes; page < end_page; ++page) {
            visit(page);
        }
    }
}

bool Capture::requests_go_on(const Shadow& shadow, ScanMode scan_mode, std::uint64_t found) noexcept
{
    const std::uint64_t now_ns = os::monotonic_ns();
    if (!requests_.is_open()) {
        const auto base = reinterpret_cast<std::uintptr_t>(shadow.base());
        requests_.open(base, base + index_of_.capacity() * page_bytes);
    }
    if (scan_mode == ScanMode::stop) {
        return requests_.look(os::AsyncRequests::Depth::known);
    }
    constexpr std::uint64_t rarely_ns = 1'000'000'000;
    const bool rarely = now_ns - looked_everywhere_ns_ > rarely_ns;
    looked_everywhere_ns_ = rarely ? now_ns : looked_everywhere_ns_;
    // Requests that a new ring has taken have pinned pages, which is a write: without one there is nothing new to follow.
    if (requests_.pinned_by_others() != 0 && !std::exchange(pinned_told_, true)) {
        os::log(os::Severity::warning,
                "a device may store into {} KiB of this process at any time (RDMA, or a ring that cannot be seen): if that is durable "
                "memory, what it stores may be lost; read into ordinary memory and copy",
                requests_.pinned_by_others() / 1024);
    }
    return requests_.look(rarely       ? os::AsyncRequests::Depth::all
                          : found != 0 ? os::AsyncRequests::Depth::low
                                       : os::AsyncRequests::Depth::known);
}

std::uint64_t Capture::add_async_writes(const Shadow& shadow, ScanMode scan_mode, std::uint64_t found) noexcept
{
    const bool busy = requests_go_on(shadow, scan_mode, found);
    if (busy) {
        carry_found(collect_number_);
    }
    visit_pages(requests_.no_longer_registered(), shadow, [this](std::uint64_t page) { carry(page); });
    std::uint64_t added = 0;
    if (scan_mode == ScanMode::stop) {
        visit_pages(requests_.registered(), shadow, [&](std::uint64_t page) { added += add(page, false, shadow) ? 1U : 0U; });
    }
    if (scan_mode == ScanMode::stop || !busy) {
        added += add_carried(shadow);
    }
    if (!busy) {
        forget_carried(UINT64_MAX);
    }
    return added;
}

void Capture::carry_found(std::uint32_t since_collect) noexcept
{
    for (std::uint64_t i = 0; i < page_count_; ++i) {
        if (pages_[i].found_in >= since_collect) {
            carry(pages_[i].image_page);
        }
    }
    for (std::uint64_t i = since_collect == 0 ? 0 : first_new_group_; i < group_count_; ++i) {
        carry(group_pages_[i]);
    }
    // No device takes longer: the block layer ends a request after 30 seconds.
    constexpr std::uint64_t longest_request_ns = 60'000'000'000;
    const std::uint64_t now_ns = os::monotonic_ns();
    forget_carried(now_ns > longest_request_ns ? now_ns - longest_request_ns : 0);
}

void Capture::end_stop(const Shadow& shadow) noexcept
{
    if (found_pages() == 0) {
        return;
    }
    static_cast<void>(requests_.look(os::AsyncRequests::Depth::low));
    visit_pages(requests_.no_longer_registered(), shadow, [this](std::uint64_t page) { carry(page); });
    if (requests_.found_new()) {
        carry_found(0);
    }
}

void Capture::search_pieces(void* context, std::uint64_t begin, std::uint64_t end)
{
    const Search& search = *static_cast<const Search*>(context);
    for (std::uint64_t i = begin; i < end; ++i) {
        Piece& piece = search.capture->pieces_[i];
        piece.run_count = 0;
        piece.error = 0;
        const std::uint64_t first = std::min(search.pages, i * search.pages_in_piece);
        const std::uint64_t last = std::min(search.pages, first + search.pages_in_piece);
        const std::uintptr_t stop = search.base + last * page_bytes;
        for (std::uintptr_t at = search.base + first * page_bytes; at < stop;) {
            // In the background a step at a time: the kernel gives the CPU to no thread during a scan.
            constexpr std::uintptr_t background_step_bytes = 16 * mib;
            const bool in_steps = search.pacer != nullptr && search.pacer->allows_pauses();
            const std::uintptr_t end_of_step = in_steps ? std::min(stop, at + background_step_bytes) : stop;
            std::size_t count = 0;
            at = search.tracker->collect(at, end_of_step, search.scan_mode, piece.runs.data() + piece.run_count,
                                         piece.runs.capacity() - piece.run_count, count);
            if (at == 0) {
                piece.error = errno;
                break;
            }
            piece.run_count += count;
            if (search.pacer != nullptr) {
                search.pacer->step_done();
            }
        }
    }
}

Result<std::uint64_t> Capture::collect(Tracker& tracker, const Shadow& shadow, ScanMode scan_mode, CopyTeam* team, Pacer* pacer) noexcept
{
    // A walk over less than this is over before an assistant is awake.
    constexpr std::uint64_t worth_sharing_pages = 128 * mib / page_bytes;
    constexpr std::uint64_t worth_sharing_found = 4096;
    const std::uint64_t image_pages = shadow.bytes() / page_bytes;
    const bool shared = team != nullptr && (image_pages > worth_sharing_pages || found_last_ > worth_sharing_found);
    const std::uint64_t piece_count = shared ? pieces_max : 1;
    keeps_copies_ = tracker.has_lines() && log_ != nullptr;
    Search search{this,
                  &tracker,
                  reinterpret_cast<std::uintptr_t>(shadow.base()),
                  image_pages,
                  round_up((image_pages + piece_count - 1) / piece_count, HotChunks::chunk_pages),
                  scan_mode,
                  pacer};
    if (shared) {
        team->share(piece_count, 1, &search_pieces, &search);
    } else {
        search_pieces(&search, 0, 1);
    }
    copy_count_ = 0;
    unstaged_count_ = 0;
    found_again_ = 0;
    whole_again_ = 0;
    lines_again_ = 0;
    patches_again_ = 0;
    patch_count_ = 0;
    patch_lines_ = 0;
    ++collect_number_;
    made_whole_count_ = 0;
    first_new_group_ = group_count_;
    first_new_line_ = line_count_;
    first_new_whole_ = page_count_;
    std::uint64_t found = add_wanted(shadow);
    for (std::uint64_t i = 0; i < piece_count; ++i) {
        if (pieces_[i].error != 0) {
            return fail(SP_E_IO, pieces_[i].error, "the {} tracker cannot find written pages: {}", tracker.name(),
                        std::strerror(pieces_[i].error));
        }
        found += add_runs(tracker, search, pieces_[i], shadow);
    }
    found += add_async_writes(shadow, scan_mode, found);
    found += add_kernel_writes(shadow, scan_mode);
    if (scan_mode == ScanMode::background) {
        take_whole_pages(tracker);
    }
    copy_found(shadow, team, pacer);
    if (scan_mode == ScanMode::background) {
        make_room_for_copies(found - std::min(found, found_again_), image_pages, *pacer);
        make_room_for_lines();
    }
    found_last_ = found;
    return found;
}

void Capture::clear(std::uint64_t now_ns) noexcept
{
    for (std::uint64_t i = 0; i < page_count_; ++i) {
        const std::uint32_t page = pages_[i].image_page;
        index_of_[page] = 0;
        if (log_ != nullptr) {
            many_lines_[page] = std::popcount(lines_of_[page]) > versions::delta_lines_of_page_max ? 1 : 0;
            lines_of_[page] = 0;
        }
    }
    return_unused(now_ns);
    for (std::uint64_t i = 0; i < group_count_; ++i) {
        lines_of_[group_pages_[i]] = 0;
    }
    group_count_ = 0;
    line_count_ = 0;
    pages_in_part_ = 0;
    page_count_ = 0;
    staged_count_ = 0;
    unstaged_count_ = 0;
    copy_count_ = 0;
}

}  // namespace stillpoint::pmthreads

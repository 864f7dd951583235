#include "versions/image_engine.hpp"

#include <algorithm>
#include <mutex>

#include "pool/commit_record.hpp"
#include "pool/growth.hpp"
#include "runtime/statistics.hpp"
#include "versions/room.hpp"

namespace stillpoint::versions {

Result<RecoveryReport> ImageEngine::recover_table(Deltas* deltas)
{
    auto state = recover_state(*pool_, table_, locations_, nullptr, deltas);
    if (!state) {
        return pass_on(state.error());
    }
    pages_end_ = state->pages_end;
    after_crash_ = state->after_crash;
    clock_.set(state->next_epoch, state->report.epoch);
    return state->report;
}

Result<void> ImageEngine::check_segments(const EngineFormat& format) const
{
    for (const Segment& segment : pool_->segments()) {
        if (segment.file_pages !=
            format.file_pages_for(segment.first_image_page, segment.image_pages, pool_->facts().image_bytes_first_max)) {
            return fail(SP_E_POOL_CORRUPT, 0, "{}: segment at image page {} has a shape that {} never writes; restore the pool from a copy",
                        pool_->medium().path(), segment.first_image_page, format.name);
        }
    }
    return {};
}

Result<void> ImageEngine::choose_loading(std::string_view choice, bool auto_is_lazy, RecoveryReport& report)
{
    if (choice == "eager" || (choice != "lazy" && (pages_end_ == 0 || !auto_is_lazy))) {
        return {};
    }
    auto opened = os::Userfaultfd::open(os::Userfaultfd::Purpose::serving_only);
    const bool possible = opened && opened->scope() == os::Userfaultfd::Scope::user_and_kernel;
    if (!possible && choice == "lazy") {
        return fail(SP_E_UNSUPPORTED, 0,
                    "recovery=lazy needs a userfaultfd that also serves system calls (root, CAP_SYS_PTRACE, or sysctl "
                    "vm.unprivileged_userfaultfd=1)");
    }
    if (possible && pages_end_ != 0) {
        serving_.emplace(std::move(*opened));
        report.lazy = true;
    }
    return {};
}

Result<void> ImageEngine::serve_first_touches()
{
    if (auto done = serving_->register_range(shadow_.base(), pages_end_ * page_bytes, true); !done) {
        return done;
    }
    return loader_.start_lazy(shadow_.base(), *serving_);
}

void ImageEngine::finish_serving() noexcept
{
    if (serving_) {
        loader_.finish_loading();
        loader_.stop();
        serving_->close();
        serving_.reset();
    }
}

Result<void> ImageEngine::load_pages(bool lazy, std::uint64_t* content_hashes, DeltaReplay* replay)
{
    if (pages_end_ == 0) {
        return {};
    }
    if (auto done = loader_.prepare({&table_, &pool_->medium(), pages_end_, content_hashes, replay}); !done) {
        return done;
    }
    return lazy ? Result<void>{} : loader_.load_all(shadow_.base());
}

void ImageEngine::publish_start() const noexcept
{
    Statistics& figures = statistics();
    figures.image_bytes.store(pool_->facts().image_bytes, std::memory_order_relaxed);
    figures.epoch.store(clock_.running(), std::memory_order_relaxed);
    figures.durable_epoch.store(clock_.durable(), std::memory_order_release);
}

Result<void> ImageEngine::run()
{
    {
        const std::lock_guard guard(medium_lock_);
        write_back_what_was_recovered(*pool_, table_, after_crash_);
        if (auto begun = begin_run(*pool_); !begun) {
            return begun;
        }
    }
    return start_checkpoints();
}

Result<void> ImageEngine::stop(bool clean)
{
    Result<void> outcome;
    const bool finished = end_checkpoints(clean);
    if (clock_.failed()) {
        outcome = pass_on(clock_.failure());
    } else if (!finished) {
        outcome = fail(SP_E_TIMED_OUT, 0, "no quiescent state for a last {}: a thread stayed inside {}; the pool stays at epoch {}",
                       words_.checkpoint, words_.section, clock_.durable());
    }
    loader_.stop();
    return outcome;
}

void ImageEngine::before_fork() noexcept
{
    // A child has no loader: what is not in memory would read as zeroes there.
    loader_.finish_loading();
}

void ImageEngine::detach_after_fork() noexcept
{
    detached_ = true;
    loader_.detach_after_fork();
    if (serving_) {
        serving_->close();
    }
    detach_parts_after_fork();
    pool_->medium().detach_after_fork();
}

Result<void> ImageEngine::check_may_grow() const
{
    if (detached_) {
        return fail(SP_E_DETACHED, 0, "a child made by fork cannot grow its parent's pool");
    }
    return {};
}

Result<std::uint64_t> ImageEngine::grow_pool(std::uint64_t wanted, const EngineFormat& format)
{
    if (wanted > pool_->facts().image_bytes) {
        const MediumTurn turn(pool_->medium());
        const PoolFacts& facts = pool_->facts();
        const std::uint64_t by_policy = growth::next_image_bytes(facts.image_bytes, facts.image_bytes_max);
        if (auto taken = take_room_for_tables(*pool_, format, std::max(wanted, by_policy)); !taken) {
            return pass_on(taken.error());
        }
        const std::size_t segments_before = pool_->segments().size();
        if (auto grown = pool_->grow(wanted, format); !grown) {
            return pass_on(grown.error());
        }
        for (const Segment& segment : pool_->segments().subspan(segments_before)) {
            announce_segment(segment);
        }
    }
    return pool_->facts().image_bytes;
}

Result<void> ImageEngine::wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) { return clock_.wait_durable(epoch, deadline_ns); }

Result<void> ImageEngine::checkpoint_now()
{
    const std::uint64_t epoch = clock_.running();
    request_checkpoint();
    return clock_.wait_durable(epoch, UINT64_MAX);
}

bool ImageEngine::absorb_lost_page(void* address) noexcept { return pool_->medium().absorb_lost_page(address); }

Result<void> ImageEngine::enlarge_image(std::uint64_t bytes)
{
    if (auto done = shadow_.make_accessible(bytes); !done) {
        return done;
    }
    shadow_.publish(bytes);
    return {};
}

Result<std::uint64_t> ImageEngine::grow_image(std::uint64_t wanted, const EngineFormat& format)
{
    if (auto allowed = check_may_grow(); !allowed) {
        return pass_on(allowed.error());
    }
    std::uint64_t bytes = 0;
    {
        const std::lock_guard guard(medium_lock_);
        const auto grown = grow_pool(wanted, format);
        if (!grown) {
            return grown;
        }
        bytes = *grown;
    }
    // Not under the medium's lock: a snapshot may be written meanwhile, and be waited for.
    const std::lock_guard guard(growing_lock_);
    if (bytes > shadow_.bytes()) {
        if (auto done = enlarge_image(bytes); !done) {
            return pass_on(done.error());
        }
        statistics_of(statistics_number).image_bytes.store(bytes, std::memory_order_relaxed);
    }
    return shadow_.bytes();
}

}  // namespace stillpoint::versions

#include "whole_copy.hpp"

#include <cstdio>
#include <unistd.h>

#include "os/clock.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::uint64_t progress_interval_ns = 200'000'000;

void print_copy_progress(std::uint64_t done, std::uint64_t total)
{
    static std::uint64_t last_ns = 0;
    const std::uint64_t now = os::monotonic_ns();
    if (now - last_ns < progress_interval_ns || total == 0) {
        return;
    }
    last_ns = now;
    print_error("\r\033[Kstillpoint: copied {} % of {}", done * 100 / total, size_text(total));
    std::fflush(stderr);
}

std::string milliseconds(std::uint64_t ns) { return text_of("{:.1f} ms", static_cast<double>(ns) / 1e6); }

}  // namespace

CopyProgress copy_progress_line(bool wanted) { return wanted && isatty(STDERR_FILENO) == 1 ? &print_copy_progress : nullptr; }

void erase_copy_progress(CopyProgress progress)
{
    if (progress != nullptr) {
        print_error("\r\033[K");
    }
}

Result<VerifiedCopy> finish_and_verify(CopiedFile& copy, const std::string& unfinished, const std::string& from, bool progress)
{
    if (auto finished = copy.finish(); !finished) {
        return pass_on(finished.error());
    }
    const auto opened = open_pool_to_read(unfinished, false);  // The copy has its lock.
    auto verified = opened ? verify(*opened, progress, {}) : Result<Verification>(pass_on(opened.error()));
    if (!verified) {
        const Failure& found = verified.error();
        if (found.code != SP_E_NO_MEMORY && found.code != SP_E_IO) {
            unlink(unfinished.c_str());
        }
        return fail(found.code, found.os_error, "{} is not copied, since its copy is not sound: {}", from, found.text());
    }
    return VerifiedCopy{verified->recovery, opened->pool.facts().engine_name};
}

void print_copy_text(const std::string& path, const std::string& from, const CopySize& copy, const PoolFileCopyFigures& figures,
                     const VerifiedCopy& verified)
{
    print("{}: made from {}, and sound at epoch {} ({} in {:.1f} s)\n", path, from, verified.recovery.epoch, size_text(copy.file_bytes),
          static_cast<double>(figures.elapsed_ns) / 1e9);
    if (copy.was_resumed) {
        print("an unfinished copy was there: {} of it had to be written\n", size_text(figures.bytes_written));
    }
    print_how_it_was_held(figures);
}

void print_how_it_was_held(const PoolFileCopyFigures& figures)
{
    if (figures.was_in_use) {
        print("process {} {} for {}, the last of {} passes; {} had changed since the one before\n", figures.process,
              figures.was_paused ? "was stopped" : "wrote nothing to the pool", milliseconds(figures.held_ns), figures.passes,
              size_text(figures.bytes_in_last_pass));
    }
}

void print_copy_json(const std::string& path, const std::string& from, const CopySize& copy, const PoolFileCopyFigures& figures,
                     const VerifiedCopy& verified)
{
    Json json;
    json.begin_object().text("pool", from).text("new", path).text("engine", verified.engine);
    json.number("durable_epoch", verified.recovery.epoch).number("file_bytes", copy.file_bytes);
    json.boolean("resumed", copy.was_resumed);
    add_figures(json, figures);
    answer(std::move(json));
}

void add_figures(Json& json, const PoolFileCopyFigures& figures)
{
    json.boolean("in_use", figures.was_in_use).number("process", figures.process);
    json.number("passes", figures.passes).number("bytes_read", figures.bytes_read).number("bytes_written", figures.bytes_written);
    json.number("bytes_in_last_pass", figures.bytes_in_last_pass).boolean("paused", figures.was_paused);
    json.number("held_ns", figures.held_ns).number("elapsed_ns", figures.elapsed_ns);
}

}  // namespace stillpoint::tool

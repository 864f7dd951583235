// word-index: an inverted index of a directory tree, built by several threads, that survives kill -9.
//
//   word-index /usr/include                                   ordinary memory
//   stillpoint run --pool index.pool -- word-index /usr/include    durable: kill it, start it again
//
// index.hpp says what is durable and why the index is right after a crash at any instruction.
// Besides allocation, roots and sp_start_kind() the program makes no call to Stillpoint.

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <getopt.h>
#include <sysexits.h>
#include <thread>
#include <time.h>
#include <unistd.h>

#include "dump.hpp"
#include "index.hpp"
#include "stillpoint/stillpoint.h"
#include "text.hpp"
#include "tree.hpp"

namespace word_index {
namespace {

struct Arguments {
    std::string directory = "/usr/include";
    unsigned threads = 2;
    std::string dump_path;
    std::string progress_path;
};

struct Run {
    Indexer indexer;
    int progress_file = -1;
};

constexpr unsigned threads_max = 256;

constexpr char help_text[] = "Usage: word-index [options] [DIRECTORY]\n"
                             "Builds an inverted index of the files below DIRECTORY (default /usr/include).\n"
                             "  --threads N       worker threads, 1 to 256 (default: as many as there are CPUs)\n"
                             "  --dump FILE       write the finished index as sorted text\n"
                             "  --progress FILE   append a line \"monotonic-nanoseconds files-done\" for each finished file\n"
                             "Examples:\n"
                             "  word-index --threads 4 /usr/share/doc\n"
                             "  stillpoint run --pool index.pool -- word-index --dump index.txt\n"
                             "Exit codes: 0 done; 1 the index is wrong or cannot be written; 64 wrong arguments; 65 the pool holds\n"
                             "another directory's index; 66 no such directory; 71 no memory or no thread.\n";

std::uint64_t monotonic_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// Outside every FASE. One write() of one short line: the file is opened with O_APPEND, so lines of several
// threads do not mix, and what was written stays when the process is killed.
void report_progress(int file, std::uint32_t files_done) noexcept
{
    if (file < 0) {
        return;
    }
    char line[64];
    const int length = std::snprintf(line, sizeof line, "%" PRIu64 " %" PRIu32 "\n", monotonic_ns(), files_done);
    if (write(file, line, static_cast<std::size_t>(length)) < 0) {
        std::perror("word-index: progress file");
    }
}

[[noreturn]] void stop_without_memory()
{
    std::fprintf(stderr, "word-index: no memory for the index: %s. %s\n", std::strerror(ENOMEM), sp_last_error());
    _exit(EX_OSERR);
}

void index_one_file(Run& run, const Task& task, Tallies& tallies)
{
    const Index& index = run.indexer.index();
    const std::string path = std::string(index.directory) + "/" + index.files[task.file].path;
    const bool readable = count_words(path.c_str(), tallies);
    if (readable) {
        for (const auto& [word, tally] : tallies) {
            if (!run.indexer.post(word, {task.file, tally.count, tally.first_line}, task.repeated)) {
                stop_without_memory();
            }
        }
    }
    const std::uint32_t done = run.indexer.finish(task.file, readable ? FileState::done : FileState::unreadable);
    report_progress(run.progress_file, done);
}

void* work(void* argument)
{
    auto& run = *static_cast<Run*>(argument);
    Tallies tallies;
    Task task{};
    while (run.indexer.take(task)) {
        index_one_file(run, task, tallies);
    }
    return nullptr;
}

bool run_workers(Run& run, unsigned threads)
{
    std::vector<pthread_t> workers;
    for (unsigned i = 0; i < threads; ++i) {
        pthread_t worker{};
        const int failed = pthread_create(&worker, nullptr, work, &run);
        if (failed != 0) {
            std::fprintf(stderr, "word-index: no thread: %s\n", std::strerror(failed));
            break;
        }
        workers.push_back(worker);
    }
    for (const pthread_t worker : workers) {
        pthread_join(worker, nullptr);
    }
    return !workers.empty();
}

/// Number of files that differ between the list in the index and the tree as it is now.
std::uint64_t count_changes(const Index& index, const Tree& tree)
{
    std::uint64_t changes = 0;
    std::size_t listed = 0;
    std::size_t found = 0;
    while (listed < index.file_count || found < tree.entries.size()) {
        const bool no_more_listed = listed == index.file_count;
        const bool no_more_found = found == tree.entries.size();
        const int order = no_more_listed ? 1 : no_more_found ? -1 : std::strcmp(index.files[listed].path, tree.entries[found].path.c_str());
        if (order == 0) {
            const File& file = index.files[listed];
            const TreeEntry& entry = tree.entries[found];
            changes += file.size_bytes != entry.size_bytes || file.modified_ns != entry.modified_ns ? 1u : 0u;
        } else {
            ++changes;
        }
        listed += order <= 0 ? 1u : 0u;
        found += order >= 0 ? 1u : 0u;
    }
    return changes;
}

void say_how_it_begins(const Indexer& indexer, const Tree& tree, unsigned threads)
{
    const Index& index = indexer.index();
    const char* const kinds[] = {"volatile", "fresh pool", "pool closed normally", "resumed after a crash"};
    std::printf("word-index: start: %s; %" PRIu32 " of %" PRIu32 " files done, %" PRIu32
                " interrupted and to be repeated; %s, %u threads\n",
                kinds[sp_start_kind()], index.files_done, index.file_count, indexer.interrupted(), index.directory, threads);
    const std::uint64_t changes = count_changes(index, tree);
    if (changes > 0) {
        std::printf("word-index: warning: %" PRIu64 " files were added, removed or changed since this index was "
                    "begun; it keeps to its list\n",
                    changes);
    }
    std::fflush(stdout);
}

int report(const Index& index, const std::string& dump_path)
{
    std::FILE* out = nullptr;
    if (!dump_path.empty()) {
        out = std::fopen(dump_path.c_str(), "we");
        if (out == nullptr) {
            std::fprintf(stderr, "word-index: %s: %s\n", dump_path.c_str(), std::strerror(errno));
            return EXIT_FAILURE;
        }
    }
    const IndexSummary summary = summarise(index, out);
    if (out != nullptr) {
        const bool failed = std::ferror(out) != 0;
        if (std::fclose(out) != 0 || failed) {
            std::fprintf(stderr, "word-index: %s: %s\n", dump_path.c_str(), std::strerror(errno));
            return EXIT_FAILURE;
        }
    }
    std::printf("word-index: done: %" PRIu32 " files (%" PRIu64 " unreadable), %.1f MB, %" PRIu64 " words, %" PRIu64 " postings, %" PRIu64
                " occurrences; digest %016" PRIx64 "\n",
                index.file_count, summary.unreadable_files, static_cast<double>(summary.bytes) / 1e6, summary.words, summary.postings,
                summary.occurrences, summary.digest);
    if (summary.doubled > 0 || index.files_done != index.file_count) {
        std::fprintf(stderr, "word-index: WRONG: %" PRIu64 " doubled postings, %" PRIu32 " of %" PRIu32 " files\n", summary.doubled,
                     index.files_done, index.file_count);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

bool parse(int count, char** words, Arguments& arguments)
{
    const option options[] = {{"threads", required_argument, nullptr, 't'},
                              {"dump", required_argument, nullptr, 'd'},
                              {"progress", required_argument, nullptr, 'p'},
                              {"help", no_argument, nullptr, 'h'},
                              {nullptr, 0, nullptr, 0}};
    const unsigned cpus = std::thread::hardware_concurrency();
    arguments.threads = cpus == 0 ? 2 : std::min(cpus, threads_max);
    for (int found = 0; (found = getopt_long(count, words, "", options, nullptr)) != -1;) {
        const char* const end = optarg == nullptr ? nullptr : optarg + std::strlen(optarg);
        switch (found) {
        case 't': {
            const auto parsed = std::from_chars(optarg, end, arguments.threads);
            if (parsed.ec != std::errc() || parsed.ptr != end || arguments.threads < 1 || arguments.threads > threads_max) {
                std::fprintf(stderr, "word-index: --threads takes a number from 1 to %u\n", threads_max);
                return false;
            }
            break;
        }
        case 'd': arguments.dump_path = optarg; break;
        case 'p': arguments.progress_path = optarg; break;
        case 'h': std::fputs(help_text, stdout); std::exit(EXIT_SUCCESS);
        default: return false;
        }
    }
    if (optind < count) {
        arguments.directory = words[optind++];
    }
    return optind == count;
}

int run_program(const Arguments& arguments)
{
    std::string error;
    Tree tree;
    if (!walk(arguments.directory, tree, error)) {
        std::fprintf(stderr, "word-index: %s\n", error.c_str());
        return EX_NOINPUT;
    }
    Run run;
    if (!run.indexer.open(tree, error)) {
        std::fprintf(stderr, "word-index: %s\n", error.c_str());
        return EX_DATAERR;
    }
    if (!arguments.progress_path.empty()) {
        run.progress_file = open(arguments.progress_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (run.progress_file < 0) {
            std::fprintf(stderr, "word-index: %s: %s\n", arguments.progress_path.c_str(), std::strerror(errno));
            return EXIT_FAILURE;
        }
    }
    say_how_it_begins(run.indexer, tree, arguments.threads);
    const std::uint64_t begin = monotonic_ns();
    const std::uint32_t before = run.indexer.index().files_done;
    if (!run_workers(run, arguments.threads)) {
        return EX_OSERR;
    }
    if (run.progress_file >= 0) {
        close(run.progress_file);
    }
    std::printf("word-index: indexed %" PRIu32 " files in %.3f s\n", run.indexer.index().files_done - before,
                static_cast<double>(monotonic_ns() - begin) / 1e9);
    std::fflush(stdout);
    return report(run.indexer.index(), arguments.dump_path);
}

}  // namespace
}  // namespace word_index

int main(int count, char** words)
{
    word_index::Arguments arguments;
    if (!word_index::parse(count, words, arguments)) {
        std::fputs(word_index::help_text, stderr);
        return EX_USAGE;
    }
    return word_index::run_program(arguments);
}

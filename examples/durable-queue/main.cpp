// A job queue that survives: producers put jobs, workers do them and acknowledge, and kill -9 at any moment loses none and counts none
// twice.
//
//     durable-queue --pool jobs.pool [--jobs N] [--producers N] [--workers N] [--acknowledge FILE]
//     kill -9, at any moment; and once more, until it says that all is done.
//
// A job is the text of a number, its result the number's square. With --acknowledge each put and each finish is written there, when it is
// durable, and the next run holds its queue up against that: what is missing is "LOST", and the exit code 3.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "desk.hpp"
#include "jobs.hpp"
#include "stillpoint/stillpoint.h"

namespace {

struct Settings {
    std::string pool;
    std::string acknowledged;
    std::uint64_t jobs = 20000;
    std::uint32_t producers = 4;
    std::uint32_t workers = 4;
};

/// A line for each put and finish that is durable: "put 5". Other lines, as a crash may cut them, do not count.
class Acknowledgements {
public:
    explicit Acknowledgements(const std::string& path) : file_(path.empty() ? nullptr : std::fopen(path.c_str(), "a+")) {}
    Acknowledgements(const Acknowledgements&) = delete;
    Acknowledgements& operator=(const Acknowledgements&) = delete;
    ~Acknowledgements()
    {
        if (file_ != nullptr) {
            std::fclose(file_);
        }
    }

    void note(const char* what, std::uint64_t job)
    {
        if (file_ != nullptr) {
            std::fprintf(file_, "%s %" PRIu64 ".\n", what, job);
            std::fflush(file_);
        }
    }
    /// How many acknowledged puts and finishes `jobs` does not have.
    std::size_t count_lost(const Jobs& jobs)
    {
        std::size_t lost = 0;
        char line[80];
        const std::vector<std::uint64_t> waiting = jobs.waiting();
        const std::set<std::uint64_t> open(waiting.begin(), waiting.end());
        while (file_ != nullptr && std::fgets(line, sizeof line, file_) != nullptr) {
            char what[8] = "";
            std::uint64_t job = 0;
            char end = 0;
            if (std::sscanf(line, "%7s %" SCNu64 "%c", what, &job, &end) != 3 || end != '.') {
                continue;
            }
            const bool is_there = jobs.has_put(job) && (std::strcmp(what, "put") == 0 || !open.contains(job));
            if (!is_there) {
                std::printf("LOST: %s of job %" PRIu64 "\n", what, job);
                ++lost;
            }
        }
        return lost;
    }

private:
    std::FILE* file_;
};

void produce(Jobs& jobs, Desk& desk, Acknowledgements& acknowledgements, std::uint32_t producer, std::uint64_t count)
{
    for (std::uint64_t place = jobs.puts_of(producer); place < count; ++place) {
        const std::uint64_t job = jobs.put(producer, std::to_string(place));
        acknowledgements.note("put", job);
        desk.lay(job);
    }
}

void work(Jobs& jobs, Desk& desk, Acknowledgements& acknowledgements)
{
    while (const std::optional<std::uint64_t> job = desk.take()) {
        const std::uint64_t number = std::stoull(jobs.text_of(*job));
        jobs.finish(*job, number * number);
        acknowledgements.note("done", *job);
    }
}

/// All producers and workers, to the end of the last job.
void run(Jobs& jobs, const Settings& settings, Acknowledgements& acknowledgements)
{
    Desk desk(jobs.waiting());
    std::vector<std::thread> producers;
    std::vector<std::thread> workers;
    for (std::uint32_t producer = 0; producer < settings.producers; ++producer) {
        producers.emplace_back([&, producer] { produce(jobs, desk, acknowledgements, producer, settings.jobs / settings.producers); });
    }
    for (std::uint32_t worker = 0; worker < settings.workers; ++worker) {
        workers.emplace_back([&] { work(jobs, desk, acknowledgements); });
    }
    for (std::thread& producer : producers) {
        producer.join();
    }
    desk.close();
    for (std::thread& worker : workers) {
        worker.join();
    }
}

[[noreturn]] void explain_usage()
{
    std::fprintf(stderr, "usage: durable-queue --pool FILE [--jobs N] [--producers N] [--workers N] [--acknowledge FILE]\n"
                         "       stillpoint run --engine pronto --pool FILE -- durable-queue [...]\n");
    std::exit(64);
}

std::uint64_t number(const char* text)
{
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > 100000000) {
        explain_usage();
    }
    return value;
}

Settings settings_of(int count, char** words)
{
    Settings settings;
    for (int place = 1; place < count; place += 2) {
        const std::string option = words[place];
        if (place + 1 == count) {
            explain_usage();
        }
        const char* const value = words[place + 1];
        if (option == "--pool") {
            settings.pool = value;
        } else if (option == "--acknowledge") {
            settings.acknowledged = value;
        } else if (option == "--jobs") {
            settings.jobs = number(value);
        } else if (option == "--producers") {
            settings.producers = static_cast<std::uint32_t>(number(value));
        } else if (option == "--workers") {
            settings.workers = static_cast<std::uint32_t>(number(value));
        } else {
            explain_usage();
        }
    }
    return settings;
}

}  // namespace

int main(int count, char** words)
{
    const Settings settings = settings_of(count, words);
    if (!settings.pool.empty() && sp_open(settings.pool.c_str(), "engine=pronto") != SP_OK) {
        std::fprintf(stderr, "durable-queue: %s\n", sp_last_error());
        return 1;
    }
    try {
        Jobs& jobs = pronto::get_object<Jobs>("jobs");
        Acknowledgements acknowledgements(settings.acknowledged);
        const Jobs::Results before = jobs.results();
        std::printf("durable-queue: %" PRIu64 " jobs done, %zu waiting\n", before.done, jobs.waiting().size());
        if (acknowledgements.count_lost(jobs) != 0) {
            return 3;
        }
        run(jobs, settings, acknowledgements);
        const Jobs::Results after = jobs.results();
        std::printf("durable-queue: all %" PRIu64 " jobs done, sum of squares %" PRIu64 "\n", after.done, after.sum);
    } catch (const pronto::error& failure) {
        std::fprintf(stderr, "durable-queue: %s\n", failure.what());
        return 1;
    }
    return 0;
}

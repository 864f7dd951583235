// The measured process of bench/nvhooks for code without durable memory: phoenix.c in slices (harness/turns.hpp).
//
// Usage: phoenix_worker program=histogram|string_match threads=N

#include <cstdlib>
#include <cstring>
#include <vector>

#include "../harness/turns.hpp"
#include "phoenix.h"

namespace bench {
namespace {

constexpr std::size_t bytes_of_a_turn = 48 * 1024;
constexpr unsigned threads_max = 64;

/// Zeroed memory that shares no cache line with other threads, at the same place in its page in every program compared.
void* own_pages(std::size_t bytes)
{
    constexpr std::size_t page_bytes = 4096;
    const std::size_t rounded = (bytes + page_bytes - 1) / page_bytes * page_bytes;
    void* const memory = std::aligned_alloc(page_bytes, rounded);
    if (memory != nullptr) {
        std::memset(memory, 0, rounded);
    }
    return memory;
}

class Phoenix final : public TurnWorkload {
public:
    Phoenix(bool histogram, unsigned threads) : histogram_(histogram), input_(bytes_of_a_turn)
    {
        Random random(1);
        for (char& byte : input_) {
            byte = static_cast<char>(histogram ? random.below(256) : 'a' + random.below(26));
        }
        for (std::size_t at = 6; !histogram && at < input_.size(); at += 3 + random.below(12)) {
            input_[at] = '\n';
        }
        for (unsigned thread = 0; thread < threads; ++thread) {
            counts_[thread] = static_cast<std::uint64_t*>(own_pages(phoenix_counts * sizeof(std::uint64_t)));
            scratch_[thread] = static_cast<char*>(own_pages(phoenix_word_bytes));
        }
    }
    std::uint64_t perform(unsigned thread, Random&) override
    {
        if (histogram_) {
            phoenix_histogram(reinterpret_cast<const unsigned char*>(input_.data()), input_.size(), counts_[thread]);
        } else {
            counts_[thread][0] += phoenix_string_match(input_.data(), input_.size(), scratch_[thread]);
        }
        return 1;
    }
    void settle() override {}

private:
    bool histogram_;
    std::vector<char> input_;
    std::uint64_t* counts_[threads_max] = {};
    char* scratch_[threads_max] = {};
};

void run(const Settings& settings)
{
    const std::string program = settings.text("program");
    if (program != "histogram" && program != "string_match") {
        give_up("program is histogram or string_match");
    }
    const auto threads = static_cast<unsigned>(settings.number_from("threads", 1, threads_max));
    Phoenix phoenix(program == "histogram", threads);
    serve(phoenix, threads);
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }

// Stores here and there in many pages, epoch after epoch: what changed of a page may become durable by lines, and lines live only until
// their pages are written whole.

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

using test::crash;
using test::killed;
using test::stored;
using test::words_per_page;

constexpr std::size_t scattered_words = 1 << 18;  // 2 MiB: 512 pages

/// The table, and after it a word that counts the epochs.
std::uint64_t* scattered_table() { return test::durable_words(scattered_words + 1); }

/// The stores of an epoch, always the same ones: single words all over the table; in some epochs whole pages, or words of fewer pages; and
/// a good part of the lines of the same few pages in most epochs.
/// Words often get the value back that they had; some are never stored to again.
template <class Store>
void scattered_stores(std::uint64_t epoch, Store&& store)
{
    std::mt19937_64 random(epoch);
    for (std::size_t i = epoch * 16; i < epoch * 16 + 16; ++i) {
        store(i % (scattered_words / words_per_page) * words_per_page + 2 + epoch / 32 * 8, i);
    }
    for (std::size_t i = 0; epoch % 6 != 1 && i < 8 * 30; ++i) {
        store((40 + i % 8) * words_per_page + random() % words_per_page, random() % 3);
    }
    const std::size_t first = epoch % 5 == 3 ? 300 : 0;
    const std::size_t pages = epoch % 5 == 4 ? 20 : scattered_words / words_per_page - first;
    for (std::size_t i = 0; i < 400; ++i) {
        const std::size_t page = first + random() % pages;
        if (epoch % 7 == 2 && i % 16 == 0) {
            for (std::size_t word = 0; word < words_per_page; word += 4) {
                store(page * words_per_page + word, epoch + word);
            }
        } else {
            store(page * words_per_page + random() % 4 * (words_per_page / 4), random() % 2);
        }
    }
}

class ScatteredStores : public testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body)
    {
        return test::run_with_pool(pool_, "pool_size_mb=16 interval_ms=3600000 " + std::string(GetParam()), body);
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Configurations, ScatteredStores,
                         testing::Values("tracker=uffd medium=file durability=process", "tracker=uffd medium=memory",
                                         "tracker=uffd staging_max_mb=1", "tracker=mprotect medium=file durability=process",
                                         "tracker=hooks medium=file durability=process", "tracker=hooks medium=memory",
                                         "tracker=hooks medium=memory staging_max_mb=1", "tracker=hooks verify_marks medium=memory",
                                         "engine=pronto medium=memory"),
                         [](const auto& configuration) {
                             std::string name = configuration.param;
                             std::replace_if(name.begin(), name.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
                             return name;
                         });

TEST_P(ScatteredStores, OfManyEpochsAreKept)
{
    constexpr std::uint64_t epochs_of_run = 150;  // So many that batches of the log die that this run has written.
    const auto session = [](std::uint64_t number) {
        std::uint64_t* const words = scattered_table();
        std::uint64_t& epochs = words[scattered_words];
        std::vector<std::uint64_t> expected(scattered_words);
        for (std::uint64_t epoch = 0; epoch < number * epochs_of_run; ++epoch) {
            scattered_stores(epoch, [&](std::size_t word, std::uint64_t value) { expected[word] = value; });
        }
        if (epochs != number * epochs_of_run || !std::equal(expected.begin(), expected.end(), words)) {
            return 1;
        }
        for (std::uint64_t epoch = epochs; epoch <= (number + 1) * epochs_of_run; ++epoch) {
            sp_fase_begin();
            scattered_stores(epoch, [&](std::size_t word, std::uint64_t value) {
                words[word] = value;
                stored(words[word]);
            });
            epochs = epoch + 1;
            stored(epochs);
            sp_fase_end();
            if (epoch == (number + 1) * epochs_of_run) {
                crash();  // The last one is not durable.
            }
            if (sp_checkpoint() != SP_OK) {
                return 2;
            }
        }
        return 3;
    };
    for (std::uint64_t number = 0; number < 3; ++number) {
        ASSERT_EQ(run([&] { return session(number); }), killed) << "session " << number;
    }
}

/// With little staging memory the later pages of the last epoch have none.
TEST_P(ScatteredStores, ThatMakePagesWhatTheyWereAreKept)
{
    constexpr std::size_t half = scattered_words * 3 / 5 / words_per_page * words_per_page;
    EXPECT_EQ(run([] {
                  std::uint64_t* const words = scattered_table();
                  const auto set = [words](std::size_t first, std::uint64_t value) {
                      for (std::size_t i = first; i < scattered_words; i += words_per_page) {
                          words[i] = i < half ? value + 10 : value;
                          stored(words[i]);
                      }
                  };
                  struct Epoch {
                      std::size_t first;
                      std::uint64_t value;
                  };
                  for (const Epoch& epoch : {Epoch{+half, 1}, Epoch{+half, 2}, Epoch{0, 1}}) {
                      sp_fase_begin();
                      set(epoch.first, epoch.value);
                      sp_fase_end();
                      EXPECT_EQ(sp_checkpoint(), SP_OK);
                  }
                  crash();
                  return 0;
              }),
              killed);
    EXPECT_EQ(run([] {
                  const std::uint64_t* const words = scattered_table();
                  for (std::size_t i = 0; i < scattered_words; i += words_per_page) {
                      if (words[i] != (i < half ? 11U : 1U)) {
                          return 1;
                      }
                  }
                  return 0;
              }),
              0);
}

}  // namespace
}  // namespace stillpoint

#include "texts.hpp"

#include <numeric>

#include "../harness/random.hpp"
#include "../harness/zipf.hpp"

namespace bench {

std::string word_of_number(std::uint64_t number)
{
    static constexpr std::string_view consonants = "tnsrhldcmfpgwybvkjxz";
    static constexpr std::string_view vowels = "eaoiu";
    // Syllables are the digits of a number without a zero, so no two numbers have the same ones; a last consonant, which makes
    // the length odd, belongs to every third number.
    std::string word;
    for (std::uint64_t rest = number + 1; rest > 0; rest = (rest - 1) / (consonants.size() * vowels.size())) {
        const std::uint64_t syllable = (rest - 1) % (consonants.size() * vowels.size());
        word += consonants[syllable / vowels.size()];
        word += vowels[syllable % vowels.size()];
    }
    if (number % 3 == 1) {
        word += consonants[number / 3 % 7];
    }
    return word;
}

Texts make_dictionary(std::size_t words)
{
    Random random(14);
    std::vector<std::uint32_t> numbers(words);
    std::iota(numbers.begin(), numbers.end(), 0u);
    shuffle(numbers, random);
    Texts all;
    all.begins.push_back(0);
    for (const std::uint32_t number : numbers) {
        all.bytes += word_of_number(number);
        all.bytes += '\n';
        all.begins.push_back(all.bytes.size());
    }
    return all;
}

namespace {

std::vector<std::string> vocabulary(std::uint64_t words)
{
    std::vector<std::string> all(words);
    for (std::uint64_t i = 0; i < words; ++i) {
        all[i] = word_of_number(i);
    }
    return all;
}

/// Speaks words as frequent as they are in a language.
class Speaker {
public:
    explicit Speaker(std::uint64_t seed) : random_(seed), words_(vocabulary(40'000)), zipf_(words_.size()) {}

    void say(std::string& text)
    {
        text += words_[zipf_.next(random_)];
        const std::uint64_t chance = random_.below(64);
        text += chance == 0 ? ".\n" : chance < 4 ? ", " : " ";
    }
    Random& random() noexcept { return random_; }

private:
    Random random_;
    std::vector<std::string> words_;
    Zipf zipf_;
};

}  // namespace

std::string make_text(std::size_t size_bytes)
{
    Speaker speaker(15);
    std::string text;
    text.reserve(size_bytes + 32);
    while (text.size() < size_bytes) {
        speaker.say(text);
    }
    return text;
}

Texts make_pages(std::size_t size_bytes)
{
    Speaker speaker(16);
    const Zipf places(20'000);
    Texts all;
    all.begins.push_back(0);
    all.bytes.reserve(size_bytes + 16384);
    do {
        const std::size_t page_end = all.bytes.size() + 1000 + speaker.random().below(7000);
        while (all.bytes.size() < page_end) {
            const std::uint64_t place = places.next(speaker.random());
            all.bytes += "<a href=\"http://" + word_of_number(place % 500) + ".example/" + word_of_number(place) + "\">";
            speaker.say(all.bytes);
            all.bytes += "</a>";
            for (std::uint64_t words = 1 + speaker.random().below(8); words > 0; --words) {
                speaker.say(all.bytes);
            }
        }
        all.begins.push_back(all.bytes.size());
    } while (all.bytes.size() < size_bytes);
    return all;
}

}  // namespace bench

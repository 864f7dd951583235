#include "dump.hpp"

#include <algorithm>
#include <charconv>

namespace word_index {
namespace {

class Canonical {
public:
    explicit Canonical(std::FILE* out) noexcept : out_(out) {}

    void text(std::string_view text)
    {
        for (const char c : text) {
            digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
        }
        if (out_ != nullptr) {
            std::fwrite(text.data(), 1, text.size(), out_);
        }
    }
    void number(std::uint64_t value)
    {
        char digits[24];
        const auto end = std::to_chars(std::begin(digits), std::end(digits), value);
        text({digits, static_cast<std::size_t>(end.ptr - digits)});
    }
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }

private:
    std::FILE* out_;
    std::uint64_t digest_ = 0xcbf29ce484222325u;
};

const char* state_name(FileState state) noexcept
{
    switch (state) {
    case FileState::waiting: return "waiting";
    case FileState::taken: return "taken";
    case FileState::done: return "done";
    case FileState::unreadable: return "unreadable";
    }
    return "unknown";
}

void write_files(const Index& index, Canonical& canonical, IndexSummary& summary)
{
    for (std::uint32_t i = 0; i < index.file_count; ++i) {
        const File& file = index.files[i];
        if (file.state == FileState::done) {
            summary.bytes += file.size_bytes;
        } else {
            ++summary.unreadable_files;
        }
        canonical.text("file ");
        canonical.number(i);
        canonical.text(" ");
        canonical.text(state_name(file.state));
        canonical.text(" ");
        canonical.text(file.path);
        canonical.text("\n");
    }
}

void write_word(const Word& word, std::vector<Posting>& sorted, Canonical& canonical, IndexSummary& summary)
{
    sorted.assign(word.postings, word.postings + word.posting_count);
    std::sort(sorted.begin(), sorted.end(), [](const Posting& a, const Posting& b) { return a.file < b.file; });
    std::uint64_t occurrences = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        occurrences += sorted[i].count;
        if (i > 0 && sorted[i].file == sorted[i - 1].file) {
            ++summary.doubled;
        }
    }
    canonical.text(word.view());
    canonical.text(" ");
    canonical.number(occurrences);
    for (const Posting& posting : sorted) {
        canonical.text(" ");
        canonical.number(posting.file);
        canonical.text(":");
        canonical.number(posting.count);
        canonical.text(":");
        canonical.number(posting.first_line);
    }
    canonical.text("\n");
    ++summary.words;
    summary.postings += sorted.size();
    summary.occurrences += occurrences;
}

}  // namespace

IndexSummary summarise(const Index& index, std::FILE* out)
{
    std::vector<const Word*> words;
    for (std::uint32_t i = 0; i < index.bucket_count; ++i) {
        for (const Word* word = index.buckets[i].first; word != nullptr; word = word->next) {
            words.push_back(word);
        }
    }
    std::sort(words.begin(), words.end(), [](const Word* a, const Word* b) { return a->view() < b->view(); });

    IndexSummary summary;
    Canonical canonical(out);
    write_files(index, canonical, summary);
    std::vector<Posting> sorted;
    for (const Word* word : words) {
        write_word(*word, sorted, canonical, summary);
    }
    summary.digest = canonical.digest();
    return summary;
}

}  // namespace word_index

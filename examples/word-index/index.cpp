#include "index.hpp"

#include <cstring>

#include "stillpoint/stillpoint.h"

namespace word_index {
namespace {

constexpr std::uint64_t index_magic = 0x31586449'64726f57;  // "WordIdX1", little-endian
constexpr std::uint32_t bucket_count_default = 1u << 16;
constexpr std::uint32_t first_posting_capacity = 2;

class Locked {
public:
    explicit Locked(pthread_mutex_t& lock) noexcept : lock_(lock) { pthread_mutex_lock(&lock_); }
    ~Locked() { pthread_mutex_unlock(&lock_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

private:
    pthread_mutex_t& lock_;
};

/// Guards the making of the index. It need not be durable itself: any lock delimits a FASE.
pthread_mutex_t build_lock = PTHREAD_MUTEX_INITIALIZER;

/// FNV-1a. Its value is stored in the pool, so it must be the same in every build: std::hash need not be.
std::uint64_t hash_of(std::string_view text) noexcept
{
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    return hash ^ (hash >> 32);
}

const char* copy_text(std::string_view text)
{
    auto* copy = static_cast<char*>(sp_malloc(text.size() + 1));
    if (copy != nullptr) {
        std::memcpy(copy, text.data(), text.size());
        copy[text.size()] = '\0';
    }
    return copy;
}

Word* make_word(std::string_view text, std::uint64_t hash)
{
    auto* word = static_cast<Word*>(sp_malloc(sizeof(Word) + text.size()));
    if (word == nullptr) {
        return nullptr;
    }
    auto* postings = static_cast<Posting*>(sp_malloc(first_posting_capacity * sizeof(Posting)));
    if (postings == nullptr) {
        sp_free(word);
        return nullptr;
    }
    *word = Word{nullptr, postings, hash, 0, first_posting_capacity, static_cast<std::uint32_t>(text.size()), 0};
    std::memcpy(word->text(), text.data(), text.size());
    return word;
}

bool append(Word& word, const Posting& posting)
{
    if (word.posting_count == word.posting_capacity) {
        const std::uint32_t capacity = word.posting_capacity * 2;
        auto* moved = static_cast<Posting*>(sp_realloc(word.postings, capacity * sizeof(Posting)));
        if (moved == nullptr) {
            return false;
        }
        word.postings = moved;
        word.posting_capacity = capacity;
    }
    word.postings[word.posting_count] = posting;
    ++word.posting_count;
    return true;
}

bool overwrite(Word& word, const Posting& posting) noexcept
{
    for (std::uint32_t i = 0; i < word.posting_count; ++i) {
        if (word.postings[i].file == posting.file) {
            word.postings[i] = posting;
            return true;
        }
    }
    return false;
}

}  // namespace

bool Indexer::open(const Tree& tree, std::string& error)
{
    index_ = static_cast<Index*>(sp_root("word-index", sizeof(Index)));
    if (index_ == nullptr) {
        error = std::string("no durable root for the index: ") + sp_last_error();
        return false;
    }
    // A crash between sp_root and the end of build() leaves a root of zeroes: build it now.
    if (index_->magic == 0 && !build(tree)) {
        error = std::string("no durable memory for the list of files: ") + sp_last_error();
        return false;
    }
    if (index_->magic != index_magic) {
        error = "the pool's root \"word-index\" was not made by this program";
        return false;
    }
    if (index_->directory != tree.directory) {
        error = std::string("the pool holds the index of ") + index_->directory + ", not of " + tree.directory +
                ": name that directory, or another pool";
        return false;
    }
    for (std::uint32_t file = index_->next_file; file-- > 0;) {
        if (index_->files[file].state == FileState::taken) {
            repeat_.push_back(file);
        }
    }
    interrupted_ = static_cast<std::uint32_t>(repeat_.size());
    return true;
}

// One FASE: a crash inside leaves neither the tables nor their memory allocated.
bool Indexer::build(const Tree& tree)
{
    const Locked locked(build_lock);
    Index& index = *index_;
    const std::size_t count = tree.entries.size();
    index.files = static_cast<File*>(sp_calloc(count > 0 ? count : 1, sizeof(File)));
    index.buckets = static_cast<Bucket*>(sp_calloc(bucket_count_default, sizeof(Bucket)));
    index.directory = copy_text(tree.directory);
    if (index.files == nullptr || index.buckets == nullptr || index.directory == nullptr) {
        return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const TreeEntry& entry = tree.entries[i];
        File& file = index.files[i];
        file.path = copy_text(entry.path);
        if (file.path == nullptr) {
            return false;
        }
        file.size_bytes = entry.size_bytes;
        file.modified_ns = entry.modified_ns;
        file.state = FileState::waiting;
    }
    for (std::uint32_t i = 0; i < bucket_count_default; ++i) {
        pthread_mutex_init(&index.buckets[i].lock, nullptr);
    }
    pthread_mutex_init(&index.list_lock, nullptr);
    index.bucket_count = bucket_count_default;
    index.file_count = static_cast<std::uint32_t>(count);
    index.magic = index_magic;
    return true;
}

bool Indexer::take(Task& task)
{
    const Locked locked(index_->list_lock);
    if (!repeat_.empty()) {
        task = {repeat_.back(), true};
        repeat_.pop_back();
        return true;
    }
    if (index_->next_file == index_->file_count) {
        return false;
    }
    task = {index_->next_file, false};
    index_->files[task.file].state = FileState::taken;
    ++index_->next_file;
    return true;
}

bool Indexer::post(std::string_view text, const Posting& posting, bool repeated)
{
    const std::uint64_t hash = hash_of(text);
    Bucket& bucket = index_->buckets[hash & (index_->bucket_count - 1)];
    const Locked locked(bucket.lock);
    Word* word = bucket.first;
    while (word != nullptr && (word->hash != hash || word->view() != text)) {
        word = word->next;
    }
    if (word == nullptr) {
        word = make_word(text, hash);
        if (word == nullptr) {
            return false;
        }
        word->next = bucket.first;
        bucket.first = word;
    }
    if (repeated && overwrite(*word, posting)) {
        return true;
    }
    return append(*word, posting);
}

std::uint32_t Indexer::finish(std::uint32_t file, FileState state)
{
    const Locked locked(index_->list_lock);
    index_->files[file].state = state;
    ++index_->files_done;
    return index_->files_done;
}

}  // namespace word_index

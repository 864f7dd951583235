#include "response_file.hpp"

#include <fstream>
#include <iterator>
#include <sys/mman.h>
#include <unistd.h>

#include "output.hpp"

namespace stillpoint::tool {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

/// GNU quoting: a backslash takes the next character as it is, inside quotes of both kinds too. A quote that is
/// not closed ends with the file.
std::vector<std::string> split(std::string_view text)
{
    std::vector<std::string> words;
    bool in_word = false;
    char quote = '\0';
    for (std::size_t at = 0; at < text.size(); ++at) {
        char c = text[at];
        if (quote == '\0' && is_space(c)) {
            in_word = false;
            continue;
        }
        if (!in_word) {
            words.emplace_back();
            in_word = true;
        }
        if (c == '\\' && at + 1 < text.size()) {
            words.back() += text[++at];
        } else if (c == quote) {
            quote = '\0';
        } else if (quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else {
            words.back() += c;
        }
    }
    return words;
}

std::string quoted(const std::string& word)
{
    std::string text = "\"";
    for (const char c : word) {
        text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    }
    return text + "\"\n";
}

}  // namespace

std::optional<std::vector<std::string>> words_of_response_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file.is_open() || file.bad()) {
        return std::nullopt;
    }
    return split(text);
}

std::string response_file_in_memory(const std::vector<std::string>& words)
{
    std::string text;
    for (const std::string& word : words) {
        text += quoted(word);
    }
    const int descriptor = memfd_create("stillpoint-arguments", 0);  // stays open across exec
    if (descriptor < 0) {
        return {};
    }
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t written = write(descriptor, text.data() + at, text.size() - at);
        if (written <= 0) {
            close(descriptor);
            return {};
        }
        at += static_cast<std::size_t>(written);
    }
    return text_of("/proc/self/fd/{}", descriptor);
}

}  // namespace stillpoint::tool

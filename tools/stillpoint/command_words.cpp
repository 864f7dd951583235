#include "command_words.hpp"

namespace stillpoint::tool {

std::optional<std::vector<std::string>> words_of(std::string_view text)
{
    std::vector<std::string> words;
    bool in_word = false;
    char quote = '\0';
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        const bool is_space = quote == '\0' && (c == ' ' || c == '\t' || c == '\n');
        if (is_space) {
            in_word = false;
            continue;
        }
        if (!in_word) {
            words.emplace_back();
            in_word = true;
        }
        if (c == '\\' && quote != '\'') {
            if (++at == text.size()) {
                return std::nullopt;
            }
            words.back() += text[at];
        } else if (c == quote) {
            quote = '\0';
        } else if (quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else {
            words.back() += c;
        }
    }
    return quote == '\0' ? std::optional(words) : std::nullopt;
}

std::string shell_text(const std::vector<std::string>& words)
{
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^";
    std::string text;
    for (const std::string& word : words) {
        text += text.empty() ? "" : " ";
        if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
            text += word;
            continue;
        }
        text += '\'';
        for (const char c : word) {
            text += c == '\'' ? "'\\''" : std::string(1, c);
        }
        text += '\'';
    }
    return text;
}

}  // namespace stillpoint::tool

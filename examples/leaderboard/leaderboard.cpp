// A leaderboard that survives: two indexes of the same scores, which no crash leaves different.
//
//     leaderboard --pool scores.pool ann=30 bob=20 ann=25      # each score is durable before the next is examined
//     leaderboard --pool scores.pool                           # the best ten
//
// A class with members of the standard library, made durable: each method that changes it is an operation. It is for one thread, as they
// are.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "stillpoint/pronto.hpp"
#include "stillpoint/stillpoint.h"

namespace pronto = stillpoint::pronto;

namespace {

class Leaderboard : public pronto::object<Leaderboard> {
    using Place = std::pair<long, pronto::string>;  // the best last

public:
    static constexpr char type_name[] = "leaderboard";
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&Leaderboard::record>("record"), pronto::method<&Leaderboard::forget>("forget"));
    }

    /// A player keeps his best score. False: he had a better one, and nothing changes.
    bool record(std::string_view player, long score)
    {
        const auto found = scores_.find(player);
        if (found != scores_.end() && found->second >= score) {
            return false;
        }
        run<&Leaderboard::record>(player, score, [&] {
            if (const auto old = scores_.find(player); old != scores_.end()) {
                places_.erase(Place(old->second, player));
                scores_.erase(old);
            }
            scores_.emplace(player, score);
            places_.emplace(score, player);
        });
        return true;
    }
    bool forget(std::string_view player)
    {
        const auto found = scores_.find(player);
        if (found == scores_.end()) {
            return false;
        }
        run<&Leaderboard::forget>(player, [&] {
            places_.erase(Place(found->second, player));
            scores_.erase(found);
        });
        return true;
    }

    template <class Visit>
    void best(std::size_t count, Visit visit) const
    {
        for (auto place = places_.rbegin(); place != places_.rend() && count > 0; ++place, --count) {
            visit(std::string_view(place->second), place->first);
        }
    }
    /// Whether both indexes say the same.
    [[nodiscard]] bool is_consistent() const
    {
        for (const auto& [score, player] : places_) {
            const auto found = scores_.find(player);
            if (found == scores_.end() || found->second != score) {
                return false;
            }
        }
        return places_.size() == scores_.size();
    }

private:
    std::map<pronto::string, long, std::less<>, pronto::allocator<std::pair<const pronto::string, long>>> scores_;
    std::set<Place, std::less<>, pronto::allocator<Place>> places_;
};

/// "ann=30", and "ann=" to forget her. False: it is neither.
bool take(Leaderboard& board, const char* word)
{
    const char* const sign = std::strchr(word, '=');
    if (sign == nullptr || sign == word) {
        return false;
    }
    const std::string player(word, sign);
    char* end = nullptr;
    const long score = std::strtol(sign + 1, &end, 10);
    if (*end != '\0') {
        return false;
    }
    if (end == sign + 1) {
        board.forget(player);
    } else {
        board.record(player, score);
    }
    return true;
}

}  // namespace

int main(int count, char** words)
{
    int place = 1;
    if (count >= 3 && std::strcmp(words[1], "--pool") == 0) {
        if (sp_open(words[2], "engine=pronto") != SP_OK) {
            std::fprintf(stderr, "leaderboard: %s\n", sp_last_error());
            return 1;
        }
        place = 3;
    }
    try {
        auto& board = pronto::get_object<Leaderboard>("leaderboard");
        for (; place < count; ++place) {
            if (!take(board, words[place])) {
                std::fprintf(stderr, "usage: leaderboard [--pool FILE] [PLAYER=SCORE | PLAYER=]...\n");
                return 64;
            }
        }
        if (!board.is_consistent()) {
            std::fprintf(stderr, "leaderboard: the two indexes differ\n");
            return 3;
        }
        board.best(10, [](std::string_view player, long score) {
            std::printf("%8ld  %.*s\n", score, static_cast<int>(player.size()), player.data());
        });
    } catch (const pronto::error& failure) {
        std::fprintf(stderr, "leaderboard: %s\n", failure.what());
        return 1;
    }
    return 0;
}

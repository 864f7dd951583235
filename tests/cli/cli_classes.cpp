// A class with what C++ has beyond C, for the commands that look inside.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include <stillpoint/stillpoint.h>

namespace bank {

enum class Kind : std::uint8_t { small = 1, big };
struct Base {
    int base_value = 5;
    virtual ~Base() = default;
};
struct Other {
    long other = 9;
};
struct Account : Base, Other {
    static int count;
    Kind kind = Kind::big;
    std::atomic<int> hits{3};
    std::optional<int> maybe = 7;
    std::array<short, 3> triple{1, 2, 3};
    std::unique_ptr<long> own;
    Account& self = *this;
    int Account::* member = nullptr;
    char text[8] = "hi\x01";
};
struct Tail {
    long count;
    long items[];
};
int Account::count = 0;

}  // namespace bank

int main()
{
    void* const account = sp_root("bank::Account", sizeof(bank::Account));
    auto* const tail = static_cast<bank::Tail*>(sp_root("tail", 40));
    sp_fase_begin();
    new (account) bank::Account;
    for (long i = 0; i < 4; ++i) {
        tail->items[i] = ++tail->count;
    }
    sp_fase_end();
}

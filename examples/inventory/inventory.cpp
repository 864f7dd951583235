// A shop whose orders survive kill -9: stock, customers and lists of orders change together in transactions [stillpoint/spht.hpp].
//
//     inventory --pool shop.pool --orders 100000 --acknowledge orders.txt     kill it, start it again
//
// An order takes up to three articles from the stock, or a delivery fills the stock up where one is missing. Its record goes to the
// customer's list, which keeps the newest eight; an older one is freed. No lock is held, and no transaction that has returned is lost.
// audit() checks at every start that nothing is half done. With --acknowledge each order is written down in an ordinary file after
// its transaction has returned; a restart compares.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "stillpoint/spht.hpp"

namespace spht = stillpoint::spht;

namespace {

constexpr int articles_count = 100;
constexpr int customers_count = 50;
constexpr int threads_max = 16;
constexpr int lines_max = 3;
constexpr long kept_orders = 8;
constexpr long delivery = 1000;

struct Order {
    Order* older;
    long number;
    long count[lines_max];
    int article[lines_max];
};

struct Shop {
    struct Article {
        long in_stock, sold, delivered;
    } articles[articles_count];
    struct Customer {
        Order* newest;
        long kept, ordered;
    } customers[customers_count];
    struct alignas(64) Clerk {
        long orders;  // of one thread
    } clerks[threads_max];
    long blocks_before;  // live blocks of the heap before the first order, and 1
};

/// True: the order is placed. False: an article was missing, and was delivered instead.
bool place_order(spht::transaction& tx, Shop& shop, int clerk, int customer_number, Order order)
{
    for (int i = 0; i < lines_max; ++i) {
        Shop::Article& article = shop.articles[order.article[i]];
        const long in_stock = tx.read(article.in_stock);
        if (in_stock < order.count[i]) {
            tx.write(article.in_stock, in_stock + delivery);
            tx.write(article.delivered, tx.read(article.delivered) + delivery);
            return false;
        }
        tx.write(article.in_stock, in_stock - order.count[i]);
        tx.write(article.sold, tx.read(article.sold) + order.count[i]);
    }
    Shop::Customer& customer = shop.customers[customer_number];
    order.number = tx.read(customer.ordered) + 1;
    order.older = tx.read(customer.newest);
    tx.write(customer.newest, tx.create(order));
    tx.write(customer.ordered, order.number);
    if (const long kept = tx.read(customer.kept); kept < kept_orders) {
        tx.write(customer.kept, kept + 1);
    } else {
        Order* last = tx.read(customer.newest);
        for (long i = 1; i < kept_orders; ++i) {
            last = tx.read(last->older);
        }
        tx.free(tx.read(last->older));
        tx.write(last->older, static_cast<Order*>(nullptr));
    }
    tx.write(shop.clerks[clerk].orders, tx.read(shop.clerks[clerk].orders) + 1);
    return true;
}

void work(Shop& shop, int clerk, long orders, int acknowledge)
{
    std::mt19937 random(static_cast<unsigned>(clerk + shop.clerks[clerk].orders * threads_max));
    while (shop.clerks[clerk].orders < orders) {
        Order order{};
        for (int i = 0; i < lines_max; ++i) {
            order.article[i] = static_cast<int>(random() % articles_count);
            order.count[i] = static_cast<long>(random() % 5 + 1);
        }
        const int customer = static_cast<int>(random() % customers_count);
        const bool placed = spht::atomically([&](spht::transaction& tx) { return place_order(tx, shop, clerk, customer, order); });
        if (placed && acknowledge >= 0) {
            char line[64];
            const int length = std::snprintf(line, sizeof line, "%d %ld\n", clerk, shop.clerks[clerk].orders);
            if (write(acknowledge, line, static_cast<std::size_t>(length)) != length) {
                std::perror("inventory: the file of acknowledgements");
                std::exit(1);
            }
        }
    }
}

/// No thread may be running. False: a transaction was half done.
bool audit(Shop& shop)
{
    bool is_sound = true;
    for (const Shop::Article& article : shop.articles) {
        is_sound = is_sound && article.in_stock >= 0 && article.in_stock + article.sold == article.delivered;
    }
    long blocks = shop.blocks_before - 1;
    long ordered = 0;
    for (const Shop::Customer& customer : shop.customers) {
        long kept = 0;
        for (const Order* order = customer.newest; order != nullptr && kept <= kept_orders; order = order->older, ++kept) {
            is_sound = is_sound && order->number == customer.ordered - kept;
        }
        is_sound = is_sound && kept == customer.kept;
        blocks += kept;
        ordered += customer.ordered;
    }
    for (const Shop::Clerk& clerk : shop.clerks) {
        ordered -= clerk.orders;
    }
    sp_heap_statistics heap{};
    is_sound = is_sound && sp_heap_stats(&heap) == SP_OK && static_cast<long>(heap.live_blocks) == blocks;
    return is_sound && ordered == 0;
}

/// False: the file has an order that is not in the shop.
bool has_acknowledged(const Shop& shop, const std::string& path)
{
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line) && !file.eof()) {  // A last line without its end was not finished.
        int clerk = 0;
        long orders = 0;
        if (std::sscanf(line.c_str(), "%d %ld", &clerk, &orders) == 2 && clerk < threads_max && shop.clerks[clerk].orders < orders) {
            std::printf("inventory: LOST: clerk %d has acknowledged order %ld\n", clerk, orders);
            return false;
        }
    }
    return true;
}

int run(Shop& shop, int threads, long orders, const std::string& acknowledge_path)
{
    if (shop.blocks_before == 0) {
        sp_heap_statistics heap{};
        sp_heap_stats(&heap);
        spht::atomically([&](spht::transaction& tx) { tx.write(shop.blocks_before, static_cast<long>(heap.live_blocks) + 1); });
    }
    if (!audit(shop)) {
        std::printf("inventory: BROKEN at the start\n");
        return 3;
    }
    if (!acknowledge_path.empty() && !has_acknowledged(shop, acknowledge_path)) {
        return 3;
    }
    const int acknowledge = acknowledge_path.empty() ? -1 : open(acknowledge_path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0666);
    std::vector<std::thread> clerks;
    for (int i = 0; i < threads; ++i) {
        clerks.emplace_back([&, i] { work(shop, i, orders / threads, acknowledge); });
    }
    for (std::thread& clerk : clerks) {
        clerk.join();
    }
    if (!audit(shop)) {
        std::printf("inventory: BROKEN at the end\n");
        return 3;
    }
    long made = 0;
    for (const Shop::Clerk& clerk : shop.clerks) {
        made += clerk.orders;
    }
    std::printf("inventory: done, %ld orders\n", made);
    return 0;
}

}  // namespace

int main(int count, char** words)
{
    std::string pool;
    std::string acknowledge;
    long orders = 10000;
    int threads = 4;
    for (int i = 1; i < count; i += 2) {
        const std::string word = words[i];
        const char* const value = i + 1 < count ? words[i + 1] : "";
        if (word == "--pool") {
            pool = value;
        } else if (word == "--acknowledge") {
            acknowledge = value;
        } else if (word == "--orders") {
            orders = std::atol(value);
        } else if (word == "--threads") {
            threads = std::clamp(std::atoi(value), 1, threads_max);
        } else {
            std::fprintf(stderr, "usage: inventory [--pool FILE] [--orders N] [--threads N] [--acknowledge FILE]\n");
            return 64;
        }
    }
    if (!pool.empty() && sp_open(pool.c_str(), "engine=spht") != SP_OK) {
        std::fprintf(stderr, "inventory: %s\n", sp_last_error());
        return 1;
    }
    auto* const shop = static_cast<Shop*>(sp_root("shop", sizeof(Shop)));
    if (shop == nullptr) {
        std::fprintf(stderr, "inventory: %s\n", sp_last_error());
        return 1;
    }
    try {
        return run(*shop, threads, orders, acknowledge);
    } catch (const spht::error& error) {
        std::fprintf(stderr, "inventory: %s\n", error.what());
        return 1;
    }
}

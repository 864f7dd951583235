#pragma once
// The supervisor of threads=processes, in an explored program: processes cannot be explored, but what the ring of their records becomes
// can. While a Scribing lives, the program's threads publish records as processes do, and the product's scribe and acknowledger write
// them into the logs and tell what is durable.

#include <memory>

namespace stillpoint::explorer {

class Scribing {
public:
    /// The session that is open is one of nvthreads, and no thread of the program is inside a section.
    Scribing();
    ~Scribing();
    Scribing(const Scribing&) = delete;
    Scribing& operator=(const Scribing&) = delete;

private:
    class Records;
    std::unique_ptr<Records> records_;
};

}  // namespace stillpoint::explorer

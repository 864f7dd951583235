#pragma once
// A simulated machine with a pool in a file, and the cluster that has the replica of that pool.

#include <cstdint>
#include <memory>
#include <string>

#include "media/open.hpp"
#include "sim/sim_medium.hpp"

namespace stillpoint::sim {

/// Stage::number of each file.
enum class Side : std::uint8_t {
    here,      ///< the pool of the machine
    replica,   ///< in the objects of the cluster
    incoming,  ///< the pool that is made of the replica, and takes the place of the machine's
};

/// Gives each path the stage that stands for it.
class TwoSides final : public MediumOpener {
public:
    /// The file numbers are those that file_number_of() gives for the pool here, and for the one that takes its place.
    TwoSides(Stage& here, Stage& replica, Stage& incoming, std::uint64_t here_number, std::uint64_t incoming_number);

    [[nodiscard]] Result<std::unique_ptr<Medium>> create(const MediumOptions& options, std::uint64_t size) override;
    [[nodiscard]] Result<std::unique_ptr<Medium>> open(const MediumOptions& options) override;
    [[nodiscard]] Result<void> replace(const std::string& first_name, const std::string& path) override;
    [[nodiscard]] std::uint64_t file_number(const std::string& path) override;

private:
    Stage* here_;
    Stage& replica_;
    Stage& incoming_;
    std::uint64_t here_number_;
    std::uint64_t incoming_number_;
};

}  // namespace stillpoint::sim

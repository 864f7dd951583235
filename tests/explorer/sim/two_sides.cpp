#include "sim/two_sides.hpp"

#include "media/replica/page_transfer.hpp"

namespace stillpoint::sim {

TwoSides::TwoSides(Stage& here, Stage& replica, Stage& incoming, std::uint64_t here_number, std::uint64_t incoming_number)
    : here_(&here), replica_(replica), incoming_(incoming), here_number_(here_number), incoming_number_(incoming_number)
{
    here.number = static_cast<std::uint8_t>(Side::here);
    replica.number = static_cast<std::uint8_t>(Side::replica);
    incoming.number = static_cast<std::uint8_t>(Side::incoming);
    replica.in_objects = true;
}

Result<std::unique_ptr<Medium>> TwoSides::create(const MediumOptions& options, std::uint64_t size)
{
    if (lies_in_no_file(options.path)) {
        MediumOptions unnamed = options;
        unnamed.publish_later = true;  // As every pool in Ceph.
        return replica_.create(unnamed, size);
    }
    return options.path.ends_with(".incoming") ? incoming_.create(options, size) : here_->create(options, size);
}

Result<std::unique_ptr<Medium>> TwoSides::open(const MediumOptions& options)
{
    if (!lies_in_no_file(options.path)) {
        return here_->open(options);
    }
    auto medium = replica_.open(options);
    if (medium) {
        if (auto finished = finish_transfer(**medium); !finished) {
            return pass_on(finished.error());
        }
    }
    return medium;
}

Result<void> TwoSides::replace(const std::string&, const std::string&)
{
    here_ = &incoming_;
    here_number_ = incoming_number_;
    record(EventKind::replaced, 0, nullptr, 0, incoming_number_, incoming_.number);
    record(EventKind::name_sync, 0, nullptr, 0, 0, incoming_.number);
    return {};
}

std::uint64_t TwoSides::file_number(const std::string& path)
{
    if (path.ends_with(".incoming")) {
        return incoming_number_;
    }
    return here_->named() ? here_number_ : 0;
}

}  // namespace stillpoint::sim
